package server

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// metrics are what /metrics shows. Labels have few values, all of them ours: classes, statuses, names of limits, of rules and
// of operations.
type metrics struct {
	registry *prometheus.Registry

	requests *prometheus.CounterVec   // by route, code
	seconds  *prometheus.HistogramVec // by route
	received *prometheus.CounterVec   // by route
	sent     *prometheus.CounterVec   // by route
	inFlight *prometheus.GaugeVec     // by kind

	// byClass are the series of every class, looked up once: a request must not pay for that.
	byClass map[class]classMetrics

	limited     *prometheus.CounterVec // by limit
	certificate prometheus.Counter     // certificates that could not be used

	decisions  *prometheus.CounterVec // by gate, outcome
	violations *prometheus.CounterVec // by gate, rule
	audited    *prometheus.CounterVec // by gate, rule

	launches *prometheus.CounterVec // by event, code

	storeSeconds    *prometheus.HistogramVec // by backend, operation
	storeErrors     *prometheus.CounterVec   // by backend, operation
	databaseSeconds *prometheus.HistogramVec // by operation
	databaseErrors  *prometheus.CounterVec   // by operation
	tasks           *prometheus.CounterVec   // by task, outcome
}

// classMetrics are the series of one class.
type classMetrics struct {
	requests       *prometheus.CounterVec // by code
	seconds        prometheus.Observer
	received, sent prometheus.Counter
}

// latencyBuckets reach from a cached manifest to a slow upload, in seconds.
var latencyBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func newMetrics(version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: counters("http_requests_total", "Requests answered.", "route", "code"),
		seconds:  histograms("http_request_seconds", "Time from a request's headers to the end of its answer.", "route"),
		received: counters("http_received_bytes_total", "Bytes of requests' bodies.", "route"),
		sent:     counters("http_sent_bytes_total", "Bytes of answers' bodies.", "route"),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "gatehouse", Name: "http_in_flight",
			Help: "Requests being served: small ones, and transfers of content."}, []string{"kind"}),
		limited: counters("limited_total", "Requests refused by a limit.", "limit"),
		certificate: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "gatehouse", Name: "tls_reload_failures_total",
			Help: "Changed certificates that could not be used."}),
		decisions:       counters("decisions_total", "Decisions of the gates.", "gate", "outcome"),
		violations:      counters("violations_total", "Rules that refused something.", "gate", "rule"),
		audited:         counters("audited_total", "Rules in audit mode that would have refused something.", "gate", "rule"),
		launches:        counters("launches_total", "Statements about runs by their state, grants of nodes, and what nodes were refused; with the code of what failed.", "event", "code"),
		storeSeconds:    histograms("store_seconds", "Time of an operation of the store of bytes, streaming included.", "backend", "operation"),
		storeErrors:     counters("store_errors_total", "Operations of the store of bytes that failed through its fault.", "backend", "operation"),
		databaseSeconds: histograms("database_seconds", "Time of a transaction, waiting included.", "operation"),
		databaseErrors:  counters("database_errors_total", "Transactions that failed through the database's fault.", "operation"),
		tasks:           counters("tasks_total", "Runs of the work in the background.", "task", "outcome"),
	}
	m.byClass = make(map[class]classMetrics, len(classes))
	for _, c := range classes {
		route := prometheus.Labels{"route": string(c)}
		m.byClass[c] = classMetrics{requests: m.requests.MustCurryWith(route), seconds: m.seconds.With(route), received: m.received.With(route), sent: m.sent.With(route)}
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "gatehouse", Name: "build_info", Help: "Always 1.",
		ConstLabels: prometheus.Labels{"version": version}})
	info.Set(1)
	m.registry.MustRegister(m.requests, m.seconds, m.received, m.sent, m.inFlight, m.limited, m.certificate, m.decisions, m.violations, m.audited, m.launches,
		m.storeSeconds, m.storeErrors, m.databaseSeconds, m.databaseErrors, m.tasks, info,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "gatehouse", Name: name, Help: help}, labels)
}

func histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "gatehouse", Name: name, Help: help, Buckets: latencyBuckets}, labels)
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2})
}

// answered counts a request. Codes are counted by themselves, not by their hundreds: which refusal it was is what one asks
// first, and there are few.
func (m *metrics) answered(c class, code int, received, sent int64, took time.Duration) {
	of := m.byClass[c]
	of.requests.WithLabelValues(strconv.Itoa(code)).Inc()
	of.seconds.Observe(took.Seconds())
	of.received.Add(float64(received))
	of.sent.Add(float64(sent))
}

// told counts what nodes, and who launches jobs, did or were refused.
func (m *metrics) told(e registry.Event, err error) {
	code := "ok"
	if err != nil {
		code = string(registry.CodeOf(err))
	}
	m.launches.WithLabelValues(string(e), code).Inc()
}

// decided counts a gate's decision.
func (m *metrics) decided(d rule.Decision) {
	gate, outcome := string(d.Gate), "refused"
	if len(d.Violations) == 0 {
		outcome = "allowed"
	}
	m.decisions.WithLabelValues(gate, outcome).Inc()
	count(m.violations, gate, d.Violations)
	count(m.audited, gate, slices.DeleteFunc(slices.Clone(d.Warnings), func(v rule.Violation) bool { return !v.Audit }))
}

// count counts each rule once a decision, however often it was broken.
func count(by *prometheus.CounterVec, gate string, found []rule.Violation) {
	counted := map[rule.ID]bool{}
	for _, v := range found {
		if !counted[v.Rule] {
			counted[v.Rule] = true
			by.WithLabelValues(gate, string(v.Rule)).Inc()
		}
	}
}
