package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// coldLaunches are many launches of one pack that the node does not have yet.
type coldLaunches struct {
	account string
	n       int
	one     float64 // ms of one launch alone, with a cold cache
	cost    float64 // ms of the processor time of a warm launch
	last    float64 // ms until the last of n was done
	each    float64 // ms of the processor time of each of n
	fetches float64 // of the pack, by the bytes that the registry sent
	part    float64 // of what is asked
}

// coldCount is how many launches begin at once.
const coldCount = 64

// coldShape is the pack.
var coldShape = shape{packs: 1, files: 1, bytes: 8 << 20}

// cold measures launches of a cold pack: alone, warm, and many at once. The median of the runs counts.
func (b *bench) cold(n node) (coldLaunches, error) {
	c := coldLaunches{account: n.name, n: coldCount}
	if b.o.small {
		c.n = coldCount / 4
	}
	var ones, costs, lasts, eachs, fetches, parts []float64
	for range b.o.runs {
		if err := b.ctx.Err(); err != nil {
			return c, err
		}
		j, err := n.admit(coldShape)
		if err != nil {
			return c, err
		}
		alone, err := timed(n.launch(j, "true"))
		if err != nil {
			return c, err
		}
		var warm []float64
		for range 5 {
			w, err := timed(n.launch(j, "true"))
			if err != nil {
				return c, err
			}
			warm = append(warm, ms(w.processor))
		}
		last, each, sent, err := n.atOnce(j, c.n)
		if err != nil {
			return c, err
		}
		asked := ms(alone.wall) + float64(c.n)*median(warm)/float64(runtime.NumCPU())
		ones, costs, lasts = append(ones, ms(alone.wall)), append(costs, median(warm)), append(lasts, ms(last))
		eachs, fetches, parts = append(eachs, ms(each)), append(fetches, sent), append(parts, ms(last)/asked)
	}
	c.one, c.cost, c.last, c.each, c.fetches, c.part = median(ones), median(costs), median(lasts), median(eachs), median(fetches), median(parts)
	fmt.Fprintf(os.Stderr, "bench: %s, %d cold launches: one alone %.1f ms, a warm one's processor time %.1f, the last %.1f, processor of each %.1f, %.2f fetches, %.2f of the formula\n",
		n.name, c.n, c.one, c.cost, c.last, c.each, c.fetches, c.part)
	return c, nil
}

// atOnce empties the cache and launches a job many times at once. each is the processor time of one, sent how much the registry
// sent of the pack, in packs.
func (n node) atOnce(j launchJob, count int) (last, each time.Duration, sent float64, err error) {
	if err := os.RemoveAll(n.cache()); err != nil {
		return 0, 0, 0, err
	}
	before, err := n.sent()
	if err != nil {
		return 0, 0, 0, err
	}
	errs, took := make([]error, count), make([]spent, count)
	var all sync.WaitGroup
	start := time.Now()
	for i := range count {
		all.Go(func() { took[i], errs[i] = timed(n.launch(j, "true")) })
	}
	all.Wait()
	last = time.Since(start)
	for _, t := range took {
		each += t.processor / time.Duration(count)
	}
	after, err := n.sent()
	return last, each, (after - before) / float64(j.bytes), errors.Join(append(errs, err)...)
}

// sent is how many bytes of answers the registry has sent.
func (n node) sent() (total float64, err error) {
	err = onLink(n.registry, func(l *link) error {
		a, err := l.do("GET", "/metrics", "", nil, 200, true)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(a.body)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
			if !strings.HasPrefix(name, "gatehouse_http_sent_bytes_total{") {
				continue
			}
			bytes, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return err
			}
			total += bytes
		}
		return nil
	})
	return total, err
}

func coldTable(all []coldLaunches) string {
	var out strings.Builder
	out.WriteString("| cold launches at once | account | one alone, ms | processor of a warm one, ms | the last done, ms | processor of each, ms | fetches | of the formula | asked |\n" +
		"| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, c := range all {
		fmt.Fprintf(&out, "| %d of a pack of %d MiB | %s | %s | %s | %s | %s | %.2f | %.2f | ≤ 1.2 |\n", c.n, coldShape.bytes>>20, c.account, number(c.one), number(c.cost),
			number(c.last), number(c.each), c.fetches, c.part)
	}
	return out.String()
}
