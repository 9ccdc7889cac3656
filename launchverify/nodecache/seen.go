package nodecache

import (
	"encoding/json"
	"path"
	"time"
)

// sightings are the heartbeats of other nodes' processes as this node saw them, by its own clock. They last from one
// process to the next, because no process looks for long enough.
type sightings struct {
	now     time.Duration
	was, is map[string]sighting
}

// sighting is when a heartbeat was first seen with its value.
type sighting struct {
	Beat string        `json:"beat"`
	At   time.Duration `json:"at"` // of the node's uptime
}

// sightings reads what this node saw.
func (c *Cache) sightings() *sightings {
	s := &sightings{now: c.uptime(), was: map[string]sighting{}, is: map[string]sighting{}}
	if b, err := c.readFile(path.Join("seen", c.me.node), 256*maxSmall); err == nil {
		_ = json.Unmarshal(b, &s.was) // what can't be read was not seen
	}
	return s
}

// silent reports whether the owner's heartbeat is the same as at least holdSilence ago.
func (s *sightings) silent(o owner, beat string) bool {
	name := o.String()
	before, known := s.was[name]
	if !known || before.Beat != beat || before.At > s.now {
		before = sighting{beat, s.now}
	}
	s.is[name] = before
	return s.now-before.At >= holdSilence
}

// keep writes down what was seen. What is not there any more is forgotten.
func (c *Cache) keep(s *sightings) {
	if len(s.was) == 0 && len(s.is) == 0 {
		return
	}
	if b, err := json.Marshal(s.is); err == nil {
		_ = c.write(path.Join("seen", c.me.node), b) // a cache that can't be written to evicts nothing
	}
}
