/* Linked lists through two fields of the records: `next`, and `link`, which points to the pointer to
 * the record. A record can leave its list without knowing the list's head; a `link` of NULL says that
 * it is in no list. The names of the fields are arguments, so that a record can be in several lists. */
#ifndef TENURE_LIST_H
#define TENURE_LIST_H

#include <stddef.h>

/* Puts `record` at the front of the list that begins at `*head`. */
#define TN_LIST_PUSH(head, record, next, link)                                                         \
	do {                                                                                               \
		(record)->next = *(head);                                                                      \
		(record)->link = (head);                                                                       \
		if ((record)->next != NULL)                                                                    \
			(record)->next->link = &(record)->next;                                                    \
		*(head) = (record);                                                                            \
	} while (0)

/* Takes `record` out of its list, if it is in one. */
#define TN_LIST_UNLINK(record, next, link)                                                             \
	do {                                                                                               \
		if ((record)->link == NULL)                                                                    \
			break;                                                                                     \
		*(record)->link = (record)->next;                                                              \
		if ((record)->next != NULL)                                                                    \
			(record)->next->link = (record)->link;                                                     \
		(record)->link = NULL;                                                                         \
	} while (0)

#endif
