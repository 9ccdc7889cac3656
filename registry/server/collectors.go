package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
)

// pools shows how busy the connections to the database are.
func (m *metrics) pools(look func() []metastore.Pool) {
	m.registry.MustRegister(poolCollector{look})
}

type poolCollector struct{ look func() []metastore.Pool }

var (
	poolOpen    = prometheus.NewDesc("gatehouse_database_connections", "Connections to the database.", []string{"pool", "state"}, nil)
	poolWaits   = prometheus.NewDesc("gatehouse_database_waits_total", "Transactions that waited for a connection.", []string{"pool"}, nil)
	poolWaiting = prometheus.NewDesc("gatehouse_database_wait_seconds_total", "Time that they waited.", []string{"pool"}, nil)
)

func (c poolCollector) Describe(to chan<- *prometheus.Desc) {
	to <- poolOpen
	to <- poolWaits
	to <- poolWaiting
}

func (c poolCollector) Collect(to chan<- prometheus.Metric) {
	for _, p := range c.look() {
		to <- prometheus.MustNewConstMetric(poolOpen, prometheus.GaugeValue, float64(p.InUse), p.Name, "busy")
		to <- prometheus.MustNewConstMetric(poolOpen, prometheus.GaugeValue, float64(p.Open-p.InUse), p.Name, "idle")
		to <- prometheus.MustNewConstMetric(poolWaits, prometheus.CounterValue, float64(p.Waits), p.Name)
		to <- prometheus.MustNewConstMetric(poolWaiting, prometheus.CounterValue, p.WaitSeconds, p.Name)
	}
}

// upkeep shows what the registry's own work in the background has done.
func (m *metrics) upkeep(stats func() registry.Stats) {
	m.registry.MustRegister(upkeepCollector{stats})
}

type upkeepCollector struct{ stats func() registry.Stats }

// upkeepSeries are the figures of registry.Stats under their names here.
var upkeepSeries = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(registry.Stats) float64
}{
	{upkeepDesc("collections_total", "Collections that ended well."), prometheus.CounterValue, func(s registry.Stats) float64 { return float64(s.Collections) }},
	{upkeepDesc("collection_failures_total", "Collections that failed."), prometheus.CounterValue, func(s registry.Stats) float64 { return float64(s.CollectionFailures) }},
	{upkeepDesc("collected_tags_total", "Tags removed by retention."), prometheus.CounterValue, func(s registry.Stats) float64 { return float64(s.CollectedTags) }},
	{upkeepDesc("collected_manifests_total", "Manifests removed."), prometheus.CounterValue, func(s registry.Stats) float64 { return float64(s.CollectedManifests) }},
	{upkeepDesc("collected_links_total", "Blobs removed from a repository."), prometheus.CounterValue, func(s registry.Stats) float64 { return float64(s.CollectedLinks) }},
	{upkeepDesc("collected_blobs_total", "Blobs removed."), prometheus.CounterValue, func(s registry.Stats) float64 { return float64(s.CollectedBlobs) }},
	{upkeepDesc("collected_bytes_total", "Bytes of the blobs removed."), prometheus.CounterValue, func(s registry.Stats) float64 { return float64(s.CollectedBytes) }},
	{upkeepDesc("last_collection_timestamp_seconds", "When the last collection ended well here."), prometheus.GaugeValue, func(s registry.Stats) float64 { return unix(s.LastCollection) }},
	{upkeepDesc("scrubbed_blobs_total", "Blobs read again."), prometheus.CounterValue, func(s registry.Stats) float64 { return float64(s.ScrubbedBlobs) }},
	{upkeepDesc("scrubbed_bytes_total", "Bytes read again."), prometheus.CounterValue, func(s registry.Stats) float64 { return float64(s.ScrubbedBytes) }},
	{upkeepDesc("scrub_failures_total", "Rounds of reading everything again that failed."), prometheus.CounterValue, func(s registry.Stats) float64 { return float64(s.ScrubFailures) }},
	{upkeepDesc("damaged_blobs_total", "Blobs found damaged and set aside."), prometheus.CounterValue, func(s registry.Stats) float64 { return float64(s.DamagedBlobs) }},
	{upkeepDesc("missing_blobs_total", "Blobs that a row names and the store does not have."), prometheus.CounterValue, func(s registry.Stats) float64 { return float64(s.MissingBlobs) }},
	{upkeepDesc("last_scrub_timestamp_seconds", "When the last round ended here."), prometheus.GaugeValue, func(s registry.Stats) float64 { return unix(s.LastScrubRound) }},
	{upkeepDesc("quota_refusals_total", "Writes that a quota refused."), prometheus.CounterValue, func(s registry.Stats) float64 { return float64(s.QuotaRefusals) }},
}

func upkeepDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("gatehouse_"+name, help, nil, nil)
}

func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}

func (c upkeepCollector) Describe(to chan<- *prometheus.Desc) {
	for _, s := range upkeepSeries {
		to <- s.desc
	}
}

func (c upkeepCollector) Collect(to chan<- prometheus.Metric) {
	stats := c.stats()
	for _, s := range upkeepSeries {
		to <- prometheus.MustNewConstMetric(s.desc, s.kind, s.value(stats))
	}
}

// handover shows the outbox: what waits and what was given up.
func (m *metrics) handover(count func(context.Context) ([]registry.HandoverCount, error), log *slog.Logger) {
	m.registry.MustRegister(handoverCollector{count, log})
}

type handoverCollector struct {
	count func(context.Context) ([]registry.HandoverCount, error)
	log   *slog.Logger
}

// collectTimeout is how long a look at the outbox may take: metrics are asked for when something is wrong, too.
const collectTimeout = 5 * time.Second

var (
	handoverRows   = prometheus.NewDesc("gatehouse_handovers", "Events about jobs that wait for a target, or were given up.", []string{"target", "state"}, nil)
	handoverOldest = prometheus.NewDesc("gatehouse_handover_oldest_timestamp_seconds", "When the oldest of them happened.", []string{"target", "state"}, nil)
)

func (c handoverCollector) Describe(to chan<- *prometheus.Desc) {
	to <- handoverRows
	to <- handoverOldest
}

func (c handoverCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	counts, err := c.count(ctx)
	if err != nil {
		c.log.WarnContext(ctx, "metrics: the outbox can't be read", "err", err)
		return
	}
	for _, n := range counts {
		to <- prometheus.MustNewConstMetric(handoverRows, prometheus.GaugeValue, float64(n.Count), n.Target, string(n.State))
		to <- prometheus.MustNewConstMetric(handoverOldest, prometheus.GaugeValue, unix(n.Oldest), n.Target, string(n.State))
	}
}
