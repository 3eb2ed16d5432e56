/*
 * A walk takes one look-up a frame: a table of 64-bit words says for each return address how the frame
 * is left. A miss reads the FDE of the address and runs its instructions. A word holds the rule and the
 * part of the address that its place in the table does not tell, so that readers need no lock.
 */
#define _GNU_SOURCE
#include "unwind.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { INDEX_BITS = 14, TAG_BITS = 48 - INDEX_BITS, PAYLOAD_BITS = 64 - TAG_BITS };
enum { CFA_BITS = 16, BP_BITS = 10 };
/* The CFA is sp or bp plus an offset, or what lies at bp plus an offset; or the frame is the
 * kernel's. */
enum kind { UNKNOWN, FROM_SP, FROM_BP, AT_BP, FRAME_POINTER, SIGNAL, STOP };
enum { REG_BP = 6, REG_SP = 7, REG_IP = 16, FRAME_BIT = 1 };

typedef struct rule {
	enum kind kind;
	int64_t cfa, bp; /* bytes; bp relative to the CFA, 0 where the register is unchanged */
} rule;

static _Atomic uint64_t table[1 << INDEX_BITS];

void unwind_forget(void) {
	for (size_t i = 0; i < 1 << INDEX_BITS; i++)
		atomic_store_explicit(&table[i], 0, memory_order_relaxed);
}

static size_t place(uint64_t pc) {
	uint64_t tag = pc >> INDEX_BITS;
	return (pc ^ tag ^ tag >> INDEX_BITS) & ((1 << INDEX_BITS) - 1);
}

typedef struct reader {
	const uint8_t *at, *end;
} reader;

static uint64_t uleb(reader *r) {
	uint64_t value = 0;
	for (unsigned shift = 0; r->at < r->end; shift += 7) {
		uint8_t byte = *r->at++;
		value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (byte < 0x80)
			break;
	}
	return value;
}

static int64_t sleb(reader *r) {
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte = 0;
	do {
		byte = r->at < r->end ? *r->at++ : 0;
		value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		shift += 7;
	} while (byte >= 0x80);
	if (shift < 64 && (byte & 0x40))
		value |= ~(uint64_t)0 << shift;
	return (int64_t)value;
}

static uint64_t fixed(reader *r, unsigned bytes) {
	uint64_t value = 0;
	if ((size_t)(r->end - r->at) < bytes)
		return r->at = r->end, 0;
	memcpy(&value, r->at, bytes);
	r->at += bytes;
	return value;
}

/* A pointer in one of the encodings of .eh_frame. */
static uintptr_t encoded(reader *r, uint8_t encoding) {
	uintptr_t base = (encoding & 0x70) == 0x10 ? (uintptr_t)r->at : 0;
	switch (encoding & 0x0f) {
	case 0x0:
		return base + fixed(r, 8);
	case 0x2:
		return base + fixed(r, 2);
	case 0x3:
		return base + fixed(r, 4);
	case 0x4:
		return base + fixed(r, 8);
	case 0xa:
		return base + (uintptr_t)(int16_t)fixed(r, 2);
	case 0xb:
		return base + (uintptr_t)(int32_t)fixed(r, 4);
	case 0xc:
		return base + fixed(r, 8);
	default:
		return 0;
	}
}

typedef struct common {
	reader code;
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding;
	bool signal, sized;
} common;

static bool read_common(const uint8_t *at, common *c) {
	reader r = {at, at + 4};
	uint64_t length = fixed(&r, 4);
	if (length == 0 || length == 0xffffffff)
		return false;
	r.end = r.at + length;
	r.at += 4;
	uint8_t version = (uint8_t)fixed(&r, 1);
	const char *augmentation = (const char *)r.at;
	r.at += strlen(augmentation) + 1;
	c->code_align = uleb(&r);
	c->data_align = sleb(&r);
	if (version == 1)
		fixed(&r, 1);
	else
		uleb(&r);
	c->encoding = 0;
	c->signal = c->sized = false;
	const uint8_t *instructions = r.at;
	for (; *augmentation; augmentation++) {
		if (*augmentation == 'z') {
			c->sized = true;
			uint64_t bytes = uleb(&r);
			instructions = r.at + bytes;
		} else if (*augmentation == 'R')
			c->encoding = (uint8_t)fixed(&r, 1);
		else if (*augmentation == 'L')
			fixed(&r, 1);
		else if (*augmentation == 'P')
			encoded(&r, (uint8_t)fixed(&r, 1));
		else if (*augmentation == 'S')
			c->signal = true;
		else
			break;
	}
	c->code = (reader){c->sized ? instructions : r.at, r.end};
	return true;
}

typedef struct row {
	rule rule;
	bool ra_gone;
} row;

/* `DW_OP_breg6 N, DW_OP_deref`, the CFA of functions that realign the stack. */
static rule of_expression(reader r, rule old) {
	rule stop = {STOP, 0, 0};
	if (fixed(&r, 1) != 0x70 + REG_BP)
		return stop;
	int64_t offset = sleb(&r);
	return fixed(&r, 1) == 0x06 && r.at == r.end ? (rule){AT_BP, offset, old.bp} : stop;
}

static void define_cfa(row *now, uint64_t reg) {
	now->rule.kind = reg == REG_SP ? FROM_SP : reg == REG_BP ? FROM_BP : STOP;
}

static void saved_at(row *now, uint64_t reg, int64_t offset) {
	if (reg == REG_BP)
		now->rule.bp = offset;
	else if (reg == REG_IP && offset != -8)
		now->rule.kind = STOP;
}

static void restore(row *now, const row *initial, uint64_t reg) {
	if (reg == REG_BP)
		now->rule.bp = initial->rule.bp;
}

/* An expression tells where a register is saved; bp's is understood where it is bp plus an offset of a
 * frame whose CFA was realigned: bp is then stored at bp itself. */
static void saved_by(row *now, uint64_t reg, reader r) {
	if (reg != REG_BP)
		return;
	bool simple = fixed(&r, 1) == 0x70 + REG_BP && sleb(&r) == 0 && r.at == r.end;
	now->rule.bp = simple ? FRAME_BIT : 0;
	if (!simple)
		now->rule.kind = STOP;
}

/* Instructions that change the row at most; the opcode has been read. */
static void change(reader *r, uint8_t op, const common *c, const row *initial, row *now) {
	uint64_t reg, length;
	switch (op) {
	case 0x05:
		reg = uleb(r);
		saved_at(now, reg, (int64_t)uleb(r) * c->data_align);
		break;
	case 0x06:
		restore(now, initial, uleb(r));
		break;
	case 0x07:
		now->ra_gone |= uleb(r) == REG_IP;
		break;
	case 0x08:
		now->rule.bp = uleb(r) == REG_BP ? 0 : now->rule.bp;
		break;
	case 0x09:
		uleb(r), uleb(r);
		break;
	case 0x0c:
		define_cfa(now, uleb(r)), now->rule.cfa = (int64_t)uleb(r);
		break;
	case 0x0d:
		define_cfa(now, uleb(r));
		break;
	case 0x0e:
		now->rule.cfa = (int64_t)uleb(r);
		break;
	case 0x0f:
		length = uleb(r);
		now->rule = of_expression((reader){r->at, r->at + length}, now->rule);
		r->at += length;
		break;
	case 0x10:
		reg = uleb(r), length = uleb(r);
		saved_by(now, reg, (reader){r->at, r->at + length});
		r->at += length;
		break;
	case 0x11:
		reg = uleb(r);
		saved_at(now, reg, sleb(r) * c->data_align);
		break;
	case 0x12:
		define_cfa(now, uleb(r)), now->rule.cfa = sleb(r) * c->data_align;
		break;
	case 0x13:
		now->rule.cfa = sleb(r) * c->data_align;
		break;
	case 0x16:
		uleb(r), length = uleb(r), r->at += length;
		break;
	case 0x2e:
		uleb(r);
		break;
	default:
		now->rule.kind = STOP;
		r->at = r->end;
	}
}

/* Runs the instructions up to address `pc`; `initial` is the row to restore from. */
static void run(const common *c, reader r, uintptr_t at, uintptr_t pc, const row *initial, row *now) {
	row kept[8];
	unsigned depth = 0;
	while (r.at < r.end && at <= pc) {
		uint8_t op = (uint8_t)fixed(&r, 1), low = op & 0x3f;
		if (op >> 6 == 1)
			at += low * c->code_align;
		else if (op >> 6 == 2)
			saved_at(now, low, (int64_t)uleb(&r) * c->data_align);
		else if (op >> 6 == 3)
			restore(now, initial, low);
		else if (op == 0x01)
			at = encoded(&r, c->encoding);
		else if (op >= 0x02 && op <= 0x04)
			at += fixed(&r, 1u << (op - 2)) * c->code_align;
		else if (op == 0x0a)
			kept[depth++ % 8] = *now;
		else if (op == 0x0b)
			*now = depth ? kept[--depth % 8] : *now;
		else if (op != 0)
			change(&r, op, c, initial, now);
	}
}

/* The FDE of `pc` by the sorted table of .eh_frame_hdr, or NULL. */
static const uint8_t *find_fde(const uint8_t *header, uintptr_t pc) {
	if (header == NULL || header[0] != 1 || header[2] != 0x03 || header[3] != 0x3b)
		return NULL;
	reader r = {header + 4, header + 20};
	encoded(&r, header[1]);
	uint32_t count = (uint32_t)fixed(&r, 4);
	const int32_t(*entries)[2] = (const void *)r.at;
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if ((uintptr_t)header + (uintptr_t)entries[middle][0] <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? header + entries[low - 1][1] : NULL;
}

static rule compute(uintptr_t pc, const struct dl_find_object *module) {
	rule stop = {STOP, 0, 0}, unknown = {FRAME_POINTER, 0, 0};
	const uint8_t *fde = find_fde(module->dlfo_eh_frame, pc);
	if (fde == NULL)
		return unknown;
	reader r = {fde, fde + 8};
	uint64_t length = fixed(&r, 4);
	const uint8_t *common_at = r.at - fixed(&r, 4);
	common c;
	if (length == 0 || length == 0xffffffff || !read_common(common_at, &c))
		return unknown;
	r.end = fde + 4 + length;
	uintptr_t begin = encoded(&r, c.encoding), bytes = encoded(&r, c.encoding & 0x0f);
	if (pc < begin || pc - begin >= bytes)
		return unknown;
	if (c.signal)
		return (rule){SIGNAL, 0, 0};
	if (c.sized) {
		uint64_t skipped = uleb(&r);
		r.at += skipped;
	}
	row initial = {stop, false}, now;
	run(&c, c.code, begin, UINTPTR_MAX, &initial, &initial);
	now = initial;
	run(&c, r, begin, pc, &initial, &now);
	return now.ra_gone ? stop : now.rule;
}

static uint64_t pack(uintptr_t pc, rule r) {
	/* A frame of 256 KiB and more is not kept, nor is an address of the kernel's half. */
	int64_t cfa = r.cfa / 8, bp = r.bp == FRAME_BIT ? 1 : r.bp / 8;
	if (cfa < -(1 << (CFA_BITS - 1)) || cfa >= 1 << (CFA_BITS - 1) || bp > 1 ||
		bp <= -(1 << (BP_BITS - 1)) || pc >> 48 || r.cfa % 8 || (r.bp != FRAME_BIT && r.bp % 8))
		return 0;
	uint64_t payload = (uint64_t)r.kind | ((uint64_t)cfa & ((1 << CFA_BITS) - 1)) << 3 |
	                   ((uint64_t)bp & ((1 << BP_BITS) - 1)) << (3 + CFA_BITS);
	return (uint64_t)pc >> INDEX_BITS << PAYLOAD_BITS | payload;
}

static rule unpack(uint64_t word) {
	int64_t cfa = (int64_t)(word << (64 - 3 - CFA_BITS)) >> (64 - CFA_BITS);
	int64_t bp = (int64_t)(word << (64 - 3 - CFA_BITS - BP_BITS)) >> (64 - BP_BITS);
	return (rule){(enum kind)(word & 7), cfa * 8, bp == 1 ? FRAME_BIT : bp * 8};
}

static __attribute__((noinline)) rule look_up(uintptr_t pc, unwind_meet *meet, void *context) {
	struct dl_find_object module;
	if (_dl_find_object((void *)pc, &module) != 0)
		return (rule){FRAME_POINTER, 0, 0};
	meet(context, &module);
	rule r = compute(pc, &module);
	atomic_store_explicit(&table[place(pc)], pack(pc, r), memory_order_relaxed);
	return r;
}

static uintptr_t load(uintptr_t at) {
	return *(const uintptr_t *)at;
}

static bool inside(unwind_range stack, uintptr_t at) {
	return at >= stack.low && at + 8 <= stack.high && at % 8 == 0;
}

enum unwind_step unwind_up(
	unwind_frame *f, unwind_range stack, bool *exact, unwind_meet *meet, void *context) {
	uintptr_t pc = f->pc - !*exact, cfa;
	uint64_t word = atomic_load_explicit(&table[place(pc)], memory_order_relaxed);
	rule r = word != 0 && word >> PAYLOAD_BITS == (uint64_t)pc >> INDEX_BITS
	             ? unpack(word)
	             : look_up(pc, meet, context);
	*exact = false;
	if (__builtin_expect(r.kind == FROM_SP, 1))
		cfa = f->sp + (uintptr_t)r.cfa;
	else if (r.kind == FROM_BP)
		cfa = f->bp + (uintptr_t)r.cfa;
	else if (r.kind == AT_BP && inside(stack, f->bp + (uintptr_t)r.cfa))
		cfa = load(f->bp + (uintptr_t)r.cfa);
	else if (r.kind == FRAME_POINTER) {
		cfa = f->bp + 16;
		r.bp = -16;
	} else if (r.kind == SIGNAL && inside(stack, f->sp + sizeof(ucontext_t))) {
		const ucontext_t *context_of_signal = (const void *)f->sp;
		const greg_t *registers = context_of_signal->uc_mcontext.gregs;
		f->pc = (uintptr_t)registers[REG_RIP];
		f->sp = (uintptr_t)registers[REG_RSP];
		f->bp = (uintptr_t)registers[REG_RBP];
		*exact = true;
		return inside(stack, f->sp) ? UNWIND_OK : UNWIND_OTHER_STACK;
	} else
		return UNWIND_END;
	if (cfa <= f->sp || !inside(stack, cfa - 8))
		return UNWIND_END;
	f->pc = load(cfa - 8);
	if (r.bp != 0) {
		uintptr_t saved = r.bp == FRAME_BIT ? f->bp : cfa + (uintptr_t)r.bp;
		f->bp = inside(stack, saved) ? load(saved) : 0;
	}
	f->sp = cfa;
	return f->pc > 4096 ? UNWIND_OK : UNWIND_END;
}

static uintptr_t hexadecimal(const char **at) {
	uintptr_t value = 0;
	for (;; ++*at) {
		char c = **at;
		if (c >= '0' && c <= '9')
			value = value << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uintptr_t)(c - 'a' + 10);
		else
			return value;
	}
}

unwind_range unwind_find_stack(uintptr_t sp) {
	unwind_range found = {0, 0};
	/* Raw calls: the wrappers are points of cancellation. */
	long fd = syscall(SYS_open, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char text[4096];
	size_t have = 0;
	long got;
	while (fd >= 0 && (got = syscall(SYS_read, fd, text + have, sizeof text - 1 - have)) > 0) {
		have += (size_t)got;
		text[have] = 0;
		const char *line = text, *next;
		for (; (next = strchr(line, '\n')) != NULL; line = next + 1) {
			uintptr_t low = hexadecimal(&line);
			line++;
			uintptr_t high = hexadecimal(&line);
			if (sp >= low && sp < high && line[1] == 'r')
				found = (unwind_range){low, high};
		}
		have -= (size_t)(line - text);
		memmove(text, line, have);
		if (have == sizeof text - 1)
			break;
	}
	if (fd >= 0)
		syscall(SYS_close, fd);
	return found;
}
