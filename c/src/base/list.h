/* Linked lists through two fields of the records: `next`, and `link`, which points to the pointer that
 * points to the record. A record leaves its list without knowing which one that is, and knows that it
 * is in none by a `link` of NULL. The fields' names are arguments, so that a record can be in several. */
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
