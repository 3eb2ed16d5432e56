/* Part of os.h for a platform that has no file for the live view and no figures of malloc. Included by
 * the os_*.c of such a platform. */
#ifndef TENURE_OS_UNSEEN_H
#define TENURE_OS_UNSEEN_H

bool tn_os_show(tn_os_shown *shown, const char *name, size_t size) {
	(void)shown, (void)name, (void)size;
	return errno = ENOTSUP, false;
}

bool tn_os_is_shown(const tn_os_shown *shown) {
	(void)shown;
	return false;
}

void tn_os_hide(const tn_os_shown *shown) {
	(void)shown;
}

void tn_os_hide_in_child(const tn_os_shown *shown) {
	(void)shown;
}

void tn_os_find_malloc(void) {
}

void tn_os_ask_malloc(tn_os_malloc *figures) {
	*figures = (tn_os_malloc){"", UINT64_MAX, UINT64_MAX, UINT64_MAX};
}

uint64_t tn_os_resident_bytes(void) {
	return 0;
}

#endif
