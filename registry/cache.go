package registry

import (
	"context"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// What the registry remembers of its stores is never stale.
//
// A row is remembered with the generation that MetaStore.Generation gave before the View that read it began, and is used
// only while the generation is the same. Let a change be acknowledged before a request begins. The generation moved after
// the change's commit and before its acknowledgement, so the request finds a generation g at least as great as that of the
// change. A row remembered under g was read by a View that began after somebody saw g, so after the commit: it shows the
// change. A row remembered under another generation is not looked at. What a request that runs beside a change sees is the
// state before or after it, as without a cache. Where replicas share the store the generation says nothing (exact is false)
// and no row is remembered.
//
// Bytes are remembered by their digest alone, without a generation: they can't change. They are only asked for by a request
// whose row, read as above, names them, so nothing is served here that the rows no longer name.
//
// What says who may do what is remembered with MetaStore.AccessGeneration, to which the same holds. What depends on the clock
// is remembered with the time until which it is true.

// The most that the caches take, in bytes as their users count them.
const (
	maxCachedRows  = 8 << 20
	maxCachedBytes = 16 << 20
	entryOverhead  = 256 // of a key, its place in the map and the list
)

// rowKind says what a key of the row cache names.
type rowKind uint8

const (
	manifestRow rowKind = iota
	blobRow
	smallRow
	tokenRow // from here on what says who may do what (MetaStore.AccessGeneration)
	credentialRow
	accessRow
	limitRow
	pluginRow
	stampRow
	accountRow
)

// rowKey names a value that is read of the store: its kind and up to two names.
type rowKey struct {
	kind rowKind
	a, b string
}

// row is a remembered value.
type row struct {
	generation uint64
	value      any
}

// cache is a bounded map that forgets what was not used for longest. It is safe for concurrent use.
type cache[K comparable, V any] struct {
	mu    sync.Mutex
	lru   *simplelru.LRU[K, weighed[V]]
	bytes int
	max   int
}

type weighed[V any] struct {
	value V
	bytes int
}

func newCache[K comparable, V any](max int) *cache[K, V] {
	lru, err := simplelru.NewLRU[K, weighed[V]](max/entryOverhead, nil)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &cache[K, V]{lru: lru, max: max}
}

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.lru.Get(key)
	return e.value, ok
}

// put remembers a value of so many bytes, unless it would take more than an eighth of the whole cache.
func (c *cache[K, V]) put(key K, value V, bytes int) {
	bytes += entryOverhead
	if bytes > c.max/8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.lru.Peek(key); ok {
		c.bytes -= old.bytes
	}
	c.lru.Add(key, weighed[V]{value, bytes})
	for c.bytes += bytes; c.bytes > c.max; {
		_, oldest, _ := c.lru.RemoveOldest()
		c.bytes -= oldest.bytes
	}
}

// clear forgets everything.
func (c *cache[K, V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Purge()
	c.bytes = 0
}

// Rest gives back what is only remembered to be fast, for a registry that nobody asks anything.
func (s *Service) Rest() {
	s.rows.clear()
	s.bytes.clear()
	s.verified.clear()
	s.launches.clear()
	s.catalogues.forget()
}

// cached gives what read finds in a View, or found in one that is still true. size is what a value takes in bytes. The value
// is shared: nobody changes it.
func cached[T any](ctx context.Context, s *Service, key rowKey, size func(T) int, read func(Tx) (T, error)) (T, error) {
	generation, exact := s.generationOf(key) // before the View, see above
	if exact {
		if r, ok := s.rows.get(key); ok && r.generation == generation {
			return r.value.(T), nil
		}
	}
	var value T
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		value, err = read(tx)
		return err
	})
	if err == nil && exact {
		s.rows.put(key, row{generation, value}, size(value)+len(key.a)+len(key.b))
	}
	return value, err
}

// generationOf is the generation that a value of the kind stays true with.
func (s *Service) generationOf(key rowKey) (uint64, bool) {
	if key.kind >= tokenRow {
		return s.meta.AccessGeneration()
	}
	return s.meta.Generation()
}
