package pool

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// A call in a history: a Put of an item, or a Get or TryGet.
type call struct {
	put bool
	id  int
}

// The result of a Get: an idle item, a new one, or none.
type answer struct {
	id    int
	built bool
	none  bool
}

// The sequential pool: a set of idle items, which may lose any by decay. A Get may always build, and a
// TryGet find none, because another goroutine may hold back an item for a moment.
var sequential = porcupine.Model{
	Init: func() any { return uint64(0) },
	Step: func(state, input, output any) (bool, any) {
		idle, in := state.(uint64), input.(call)
		if in.put {
			return idle&(1<<in.id) == 0, idle | 1<<in.id
		}
		out := output.(answer)
		if out.none {
			return true, idle
		}
		if out.built {
			return idle&(1<<out.id) == 0, idle
		}
		return idle&(1<<out.id) != 0, idle &^ (1 << out.id)
	},
}

// B37, B44: each history of calls on several goroutines is one of a sequential pool: no item comes out
// twice, and none that was not put.
func TestHistoriesAreLinearizable(t *testing.T) {
	for range repeats(500) {
		history := record(4, 12)
		if !porcupine.CheckOperations(sequential, history) {
			t.Fatalf("no order explains %+v", history)
		}
	}
}

// A history that no pool has must be refused, or the check shows nothing.
func TestTheModelRefuses(t *testing.T) {
	twice := []porcupine.Operation{
		{ClientId: 0, Input: call{}, Output: answer{id: 1, built: true}, Call: 0, Return: 1},
		{ClientId: 0, Input: call{put: true, id: 1}, Output: answer{}, Call: 2, Return: 3},
		{ClientId: 0, Input: call{}, Output: answer{id: 1}, Call: 4, Return: 7},
		{ClientId: 1, Input: call{}, Output: answer{id: 1}, Call: 5, Return: 6},
	}
	if porcupine.CheckOperations(sequential, twice) {
		t.Error("an item was handed out twice, and the model has an order for it")
	}
}

func record(users, rounds int) (history []porcupine.Operation) {
	var mu sync.Mutex
	start := time.Now()
	built := map[*item]bool{}
	p := New(Config[*item]{
		New: func() *item {
			mu.Lock()
			defer mu.Unlock()
			i := &item{id: len(built)}
			built[i] = true
			return i
		},
		IdleDecay: -1,
	})
	defer p.Close()
	operate := func(user int, in call, f func() answer) {
		before := time.Since(start)
		out := f()
		after := time.Since(start)
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{ClientId: user, Input: in, Output: out,
			Call: int64(before), Return: int64(after)})
	}
	var working sync.WaitGroup
	for user := range users {
		working.Add(1)
		go func() {
			defer working.Done()
			var mine []*item
			for round := range rounds {
				operate(user, call{}, func() answer {
					if round%3 == 2 {
						i, ok := p.TryGet()
						if ok {
							mine = append(mine, i)
							return answer{id: i.id}
						}
						return answer{none: true}
					}
					i := p.Get()
					mine = append(mine, i)
					mu.Lock()
					defer mu.Unlock()
					first := built[i]
					built[i] = false
					return answer{id: i.id, built: first}
				})
				if round%2 == user%2 && len(mine) > 0 {
					i := mine[len(mine)-1]
					mine = mine[:len(mine)-1]
					operate(user, call{put: true, id: i.id}, func() answer {
						p.Put(i)
						return answer{}
					})
				}
				if round%4 == 3 {
					p.tick()
					runtime.Gosched()
				}
			}
		}()
	}
	working.Wait()
	return history
}
