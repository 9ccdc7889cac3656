package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// warmLaunch is a launch with a warm cache beside the least that it can cost.
type warmLaunch struct {
	shape    shape
	account  string
	floor    float64 // ms of reading and hashing the same bytes once
	version  float64 // ms of `sf version`
	launch   float64 // ms of `sf launch -- true`
	cost     float64 // ms of its processor time
	part     float64 // of what is asked, the median of interleaved tries
	quickest float64 // ms of the quickest launch
}

// launchShapes are measured.
var launchShapes = []shape{
	{"one pack of 32 MB, one file", 1, 1, 32_000_000, 1},
	{"one pack of 32 MB, 1000 files", 1, 1000, 32_000_000, 1},
	{"five packs of 1 MB", 5, 4, 1_000_000, 1.5},
}

// allowance is what a launch may cost besides proving bytes and starting the program twice.
const allowance = 15 * time.Millisecond

// formula is what a launch is asked to stay within: 1.5 times the floor, twice the start of the program, and the allowance.
func formula(floor, version time.Duration) time.Duration {
	return floor*3/2 + 2*version + allowance
}

// launches measures launches of every shape and account, then what a job loses by being launched, then many cold ones at once.
func (b *bench) launches(folder string) (text string, err error) {
	if err := os.Chmod(folder, 0o755); err != nil {
		return "", err
	}
	sf, err := reachable(b.o.sf, folder)
	if err != nil {
		return "", err
	}
	s, err := startGatehouse(sf, filepath.Join(folder, "registry"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	var warm []warmLaunch
	var jobs []jobCost
	var cold []coldLaunches
	for _, a := range accounts() {
		n, err := newNode(sf, folder, a, s)
		if err != nil {
			return "", err
		}
		if b.of("warm") {
			for _, one := range launchShapes {
				w, err := b.warm(n, one)
				if err != nil {
					return "", err
				}
				warm = append(warm, w)
			}
		}
		if b.of("job") {
			costs, err := b.jobCosts(n)
			if err != nil {
				return "", err
			}
			jobs = append(jobs, costs...)
		}
		if b.of("cold") {
			c, err := b.cold(n)
			if err != nil {
				return "", err
			}
			cold = append(cold, c)
		}
	}
	var tables []string
	if len(warm) > 0 {
		tables = append(tables, launchTable(warm))
	}
	if len(jobs) > 0 {
		tables = append(tables, jobTable(jobs))
	}
	if len(cold) > 0 {
		tables = append(tables, coldTable(cold))
	}
	return strings.Join(tables, "\n"), nil
}

// of reports whether a part of the launches is to be measured.
func (b *bench) of(part string) bool { return b.o.of == "" || b.o.of == part }

// reachable copies the program to where every account may execute it.
func reachable(sf, folder string) (string, error) {
	program, err := os.ReadFile(sf)
	if err != nil {
		return "", err
	}
	at := filepath.Join(folder, "sf")
	return at, os.WriteFile(at, program, 0o755)
}

// tries is how often a launch is measured in turn with what it is compared with.
func (b *bench) tries() int {
	if b.o.small {
		return 11
	}
	return 31
}

// warm measures a shape on a node whose cache has its packs.
func (b *bench) warm(n node, s shape) (warmLaunch, error) {
	w := warmLaunch{shape: s, account: n.name}
	j, err := n.admit(s)
	if err != nil {
		return w, err
	}
	for range 2 { // the first fetches
		if _, err := timed(n.launch(j, "true")); err != nil {
			return w, err
		}
	}
	var floors, versions, launches, costs, parts []float64
	for range b.tries() {
		if err := b.ctx.Err(); err != nil {
			return w, err
		}
		floor, err := j.floor()
		if err != nil {
			return w, err
		}
		version, err := timed(n.command("version"))
		if err != nil {
			return w, err
		}
		launch, err := timed(n.launch(j, "true"))
		if err != nil {
			return w, err
		}
		floors, versions, launches = append(floors, ms(floor)), append(versions, ms(version.wall)), append(launches, ms(launch.wall))
		costs, parts = append(costs, ms(launch.processor)), append(parts, ms(launch.wall)/ms(formula(floor, version.wall)))
	}
	w.floor, w.version, w.launch, w.cost, w.part = median(floors), median(versions), median(launches), median(costs), median(parts)
	w.quickest = slices.Min(launches)
	fmt.Fprintf(os.Stderr, "bench: %s, %s: floor %.1f ms (least %.1f), version %.1f (%.1f), launch %.1f (%.1f), processor %.1f, %.2f of the formula\n",
		n.name, s.name, w.floor, slices.Min(floors), w.version, slices.Min(versions), w.launch, w.quickest, w.cost, w.part)
	return w, nil
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

func launchTable(all []warmLaunch) string {
	var out strings.Builder
	out.WriteString("| launch with a warm cache | account | read + sha256 once, ms | `sf version`, ms | `sf launch -- true`, ms | processor, ms | of the formula | asked |\n" +
		"| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, w := range all {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s | %.2f | ≤ %.2g |\n", w.shape.name, w.account, number(w.floor), number(w.version), number(w.launch),
			number(w.cost), w.part, w.shape.asked)
	}
	return out.String()
}
