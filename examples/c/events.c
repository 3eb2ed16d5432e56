/* Events that one thread allocates and another thread frees. */
#include <pthread.h>
#include <stdio.h>
#include <tenure/tenure.h>

enum { PRODUCERS = 2, EVENTS = 10000 };

typedef struct event {
	struct event *next;
	int value;
} event;

/* The queue from the producers to the consumer. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static event *waiting;
static int producers_left = PRODUCERS;

static tn_shared_slab *events;

static void *produce(void *unused) {
	for (int value = 1; value <= EVENTS; value++) {
		event *e = tn_shared_slab_alloc(events);
		if (e == NULL)
			break;
		e->value = value;
		pthread_mutex_lock(&lock);
		e->next = waiting;
		waiting = e;
		pthread_cond_signal(&arrived);
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	producers_left--;
	pthread_cond_signal(&arrived);
	pthread_mutex_unlock(&lock);
	return unused;
}

/* Takes all waiting events; NULL when no more will come. */
static event *next_events(void) {
	pthread_mutex_lock(&lock);
	while (waiting == NULL && producers_left > 0)
		pthread_cond_wait(&arrived, &lock);
	event *first = waiting;
	waiting = NULL;
	pthread_mutex_unlock(&lock);
	return first;
}

int main(void) {
	pthread_t producers[PRODUCERS];
	events = tn_shared_slab_create(
		sizeof(event), _Alignof(event), &(tn_shared_slab_options){.name = "events"});
	if (events == NULL)
		return 1;
	for (int i = 0; i < PRODUCERS; i++)
		if (pthread_create(&producers[i], NULL, produce, NULL) != 0)
			return 1;
	/* Look the handle up once, before the loop. */
	tn_local *mine = tn_shared_slab_local(events);
	if (mine == NULL)
		return 1;
	long count = 0, sum = 0;
	for (event *e; (e = next_events()) != NULL;)
		while (e != NULL) {
			event *next = e->next;
			count++;
			sum += e->value;
			tn_shared_slab_local_free(mine, e);
			e = next;
		}
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i], NULL);
	printf("%ld events, sum %ld\n", count, sum);
	printf("still in use: %zu\n", tn_shared_slab_in_use(events));
	tn_shared_slab_trim(events);
	tn_stats stats;
	tn_shared_slab_stats(events, &stats);
	printf("chunks after trim: %zu\n", stats.chunk_count);
	tn_shared_slab_destroy(events);
	return 0;
}
