//! snmalloc and mimalloc 3, each as a table of addresses: a call through one goes straight to the
//! allocator, with no layer of this library between.

use std::ffi::c_void;

#[repr(C)]
pub struct MallocCalls {
    alloc: unsafe extern "C" fn(usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    /// Gives unused memory back; the argument says whether to try hard.
    trim: Option<unsafe extern "C" fn(bool)>,
}

extern "C" {
    fn mi_collect(force: bool);
}

#[no_mangle]
#[allow(non_upper_case_globals)]
pub static tenure_bench_snmalloc: MallocCalls = MallocCalls {
    alloc: snmalloc_sys::sn_malloc,
    free: snmalloc_sys::sn_free,
    trim: None,
};

#[no_mangle]
#[allow(non_upper_case_globals)]
pub static tenure_bench_mimalloc3: MallocCalls = MallocCalls {
    alloc: libmimalloc_sys::mi_malloc,
    free: libmimalloc_sys::mi_free,
    trim: Some(mi_collect),
};
