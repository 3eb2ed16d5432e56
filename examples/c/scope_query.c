/* An error that ends one scope and leaves the scope above usable: backend > transaction > query. The
 * error jumps out of any depth, and no function on the way has to clean up. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <tenure/tenure.h>

typedef struct backend {
	tn_scope *memory;
	jmp_buf on_error;
	const char *error;
	int locks;
} backend;

static void fail(backend *b, const char *error) {
	b->error = error;
	longjmp(b->on_error, 1);
}

static void *allocate(backend *b, tn_scope *s, size_t size) {
	void *p = tn_scope_alloc(s, size, 0);
	if (p == NULL)
		fail(b, "out of memory");
	return p;
}

static void unlock(void *of) {
	((backend *)of)->locks--;
}

static void lock(backend *b, tn_scope *s) {
	if (!tn_scope_defer(s, unlock, b))
		fail(b, "out of memory");
	b->locks++;
}

/* Sums of nested parentheses: "(1 (2 3))" is 6. Every level has a node of its own. */
static int evaluate(backend *b, tn_scope *query, const char **text) {
	int *sum = allocate(b, query, sizeof *sum);
	*sum = 0;
	for (;; (*text)++) {
		if (**text >= '0' && **text <= '9')
			*sum += **text - '0';
		else if (**text == '(') {
			(*text)++;
			*sum += evaluate(b, query, text);
		} else if (**text == ')')
			return *sum;
		else if (**text != ' ')
			fail(b, **text == '\0' ? "a parenthesis is open" : "this is no number");
	}
}

/* Allocates its result in the transaction, because the result outlives the query. */
static const char *run(backend *b, tn_scope *transaction, const char *text) {
	tn_scope *query = tn_scope_create(transaction, "query", &(tn_scope_options){.ident = text});
	if (query == NULL)
		return "out of memory";
	const char *result;
	if (setjmp(b->on_error) == 0) {
		lock(b, query);
		const char *rest = text + 1;
		result = tn_scope_printf(transaction, "%d", evaluate(b, query, &rest));
	} else {
		result = tn_scope_printf(transaction, "error: %s", b->error);
	}
	tn_scope_destroy(query);
	return result == NULL ? "out of memory" : result;
}

int main(void) {
	backend b = {.memory = tn_scope_create(NULL, "backend", NULL)};
	tn_scope *transaction = tn_scope_create(b.memory, "transaction", NULL);
	if (transaction == NULL)
		return 1;
	lock(&b, transaction);
	const char *queries[] = {"(1 (2 3))", "(1 (2 x))", "((((1", "(4 (5))"};
	const char *results[4];
	for (int i = 0; i < 4; i++) {
		results[i] = run(&b, transaction, queries[i]);
		printf("%s: %d lock held\n", queries[i], b.locks);
	}
	for (int i = 0; i < 4; i++)
		printf("%s\n", results[i]);
	tn_scope_destroy(transaction);
	printf("after the transaction: %d held\n", b.locks);
	tn_scope_destroy(b.memory);
	return 0;
}
