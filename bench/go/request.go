package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tenure-alloc/tenure/go/arena"
)

const (
	requestWorkers = 2
	requestItems   = 200
	heldObjects    = 400_000 // what a service keeps beside its requests
)

// A request: an order with its items, decoded from JSON.
type order struct {
	ID    int
	Buyer string
	Items []*orderItem
}

type orderItem struct {
	ID, Count int
	Name      string
	Tags      []string
	From      *address
}

type address struct {
	Street, City string
	Zip          int
}

func requestWorkloads() []workload {
	return []workload{{name: "go-request", ops: requestWorkers, repeats: 5000, rounds: 21,
		subjects: []subject{
			{"tenure", func() work {
				return answerRequests(func() *arena.Arena { return arena.NewArena(arena.Fast) })
			}},
			{"new", func() work { return answerRequests(func() *arena.Arena { return nil }) }}}}}
}

var held *node

// Decodes orders on several goroutines, each into an arena of its own that it resets after each; a nil
// arena is the heap. Each request is timed by itself.
func answerRequests(newArena func() *arena.Arena) work {
	for range heldObjects {
		held = &node{next: held}
	}
	text := orderText()
	var arenas [requestWorkers]*arena.Arena
	for i := range arenas {
		arenas[i] = newArena()
	}
	return func(repeats int, h *histogram) {
		var working sync.WaitGroup
		for _, a := range arenas {
			working.Add(1)
			go func() {
				defer working.Done()
				var took [100]time.Duration
				for i := range repeats {
					start := time.Now()
					answer(a, text)
					took[i%len(took)] = time.Since(start)
					if h != nil && (i%len(took) == len(took)-1 || i == repeats-1) {
						recordAll(h, took[:i%len(took)+1])
					}
				}
			}()
		}
		working.Wait()
	}
}

func answer(a *arena.Arena, text string) {
	d := decoder{a, text, 0}
	o := d.order()
	if len(o.Items) != requestItems || o.Items[requestItems-1].From.Zip != 10000+requestItems-1 {
		panic("the order was not decoded")
	}
	a.Reset()
}

func orderText() string {
	var b strings.Builder
	b.WriteString(`{"id": 4711, "buyer": "Lovelace", "items": [`)
	for i := range requestItems {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, `{"id": %d, "count": %d, "name": "article number %d of the catalogue", `,
			i, i%7+1, i*7919)
		fmt.Fprintf(&b, `"tags": ["class-%d", "colour-%d", "in stock"], `, i%5, i%11)
		fmt.Fprintf(&b, `"from": {"street": "%d Long Street", "city": "Town %d", "zip": %d}}`,
			i, i%23, 10000+i)
	}
	b.WriteString("]}")
	return b.String()
}

// A decoder of the JSON of orders; strings have no escapes.
type decoder struct {
	a    *arena.Arena
	text string
	at   int
}

func (d *decoder) order() *order {
	o := arena.New[order](d.a)
	d.object(func(key string) {
		switch key {
		case "id":
			o.ID = d.number()
		case "buyer":
			o.Buyer = d.string()
		case "items":
			d.array(func() { o.Items = arena.Append(d.a, o.Items, d.item()) })
		}
	})
	return o
}

func (d *decoder) item() *orderItem {
	i := arena.New[orderItem](d.a)
	d.object(func(key string) {
		switch key {
		case "id":
			i.ID = d.number()
		case "count":
			i.Count = d.number()
		case "name":
			i.Name = d.string()
		case "tags":
			d.array(func() { i.Tags = arena.Append(d.a, i.Tags, d.string()) })
		case "from":
			i.From = d.address()
		}
	})
	return i
}

func (d *decoder) address() *address {
	to := arena.New[address](d.a)
	d.object(func(key string) {
		switch key {
		case "street":
			to.Street = d.string()
		case "city":
			to.City = d.string()
		case "zip":
			to.Zip = d.number()
		}
	})
	return to
}

func (d *decoder) object(member func(key string)) {
	for d.expect("{"); d.next() != '}'; {
		key := d.raw()
		d.expect(":")
		member(key)
		d.skip(",")
	}
	d.at++
}

func (d *decoder) array(element func()) {
	for d.expect("["); d.next() != ']'; {
		element()
		d.skip(",")
	}
	d.at++
}

func (d *decoder) string() string { return arena.CopyString(d.a, d.raw()) }

// A string of the text itself.
func (d *decoder) raw() string {
	d.expect(`"`)
	start := d.at
	d.at += strings.IndexByte(d.text[start:], '"') + 1
	return d.text[start : d.at-1]
}

func (d *decoder) number() (value int) {
	for c := d.next(); c >= '0' && c <= '9'; c = d.text[d.at] {
		value = value*10 + int(c-'0')
		d.at++
	}
	return value
}

// The next character that is no blank.
func (d *decoder) next() byte {
	for d.text[d.at] == ' ' {
		d.at++
	}
	return d.text[d.at]
}

func (d *decoder) skip(what string) bool {
	if d.next() != what[0] {
		return false
	}
	d.at++
	return true
}

func (d *decoder) expect(what string) {
	if !d.skip(what) {
		panic(fmt.Sprintf("no %s at %d of the text", what, d.at))
	}
}
