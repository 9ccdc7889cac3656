package pack

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// Limits of an integration (packs.md 8).
const (
	maxDisplayName       = 64
	maxCatalogOrder      = 1000
	maxSwitches          = 64
	maxSwitchKey         = 256
	maxDescriptors       = 4096
	maxDescriptorText    = 512
	maxObservations      = 16
	maxObservedPath      = 256
	maxProfiles          = 256
	maxProfileText       = 1024
	maxIntegrationFaults = 64 // violations that one integration.json is worth
)

// integrationReader carries one reading of an integration.json.
type integrationReader struct {
	value  Integration
	report rule.Report
	faults int
	failed bool // a rule that is not softened is broken
}

// fault files what is wrong with v.
func (r *integrationReader) fault(v *pyvalue.Value, format string, args ...any) {
	r.failed = true
	if r.faults++; r.faults > maxIntegrationFaults {
		return
	}
	out := rule.Violation{Rule: "layout.integration", File: IntegrationFile, Message: fmt.Sprintf(format, args...)}
	if v != nil {
		out.Line, out.Column = v.Line, v.Column
	}
	r.report.Add(out)
}

func (r *integrationReader) read(root *pyvalue.Value) {
	if !r.object(root, integrationFields, "the document") {
		return
	}
	version := root.Get("contract_version")
	if version == nil || version.Kind != pyvalue.Int || version.Int.Cmp(big.NewInt(1)) != 0 {
		r.fault(orRoot(version, root), "contract_version must be the number 1")
	}
	r.optionalMatch(root, "distribution", distributionName.MatchString, "the name of a Python distribution")
	r.optionalMatch(root, "source_root", environmentName.MatchString, "the name of an environment variable")
	r.observations(root.Get("observations"))
	r.facts(root)
	r.profiles(root)
}

func orRoot(v, root *pyvalue.Value) *pyvalue.Value {
	if v != nil {
		return v
	}
	return root
}

// object checks that v is an object with known fields only.
func (r *integrationReader) object(v *pyvalue.Value, known []string, where string) bool {
	if v == nil || v.Kind != pyvalue.Map {
		r.fault(v, "%s must be an object", where)
		return false
	}
	ok := true
	for _, it := range v.Items {
		if !slices.Contains(known, it.Key.Text) {
			r.fault(it.Key, "%s has the unknown field %.100q (known: %s)", where, it.Key.Text, strings.Join(known, ", "))
			ok = false
		}
	}
	return ok
}

// optionalMatch checks a text that may be absent or empty.
func (r *integrationReader) optionalMatch(root *pyvalue.Value, field string, match func(string) bool, want string) {
	v := root.Get(field)
	if v == nil || v.Kind == pyvalue.Str && (v.Text == "" || match(v.Text)) {
		return
	}
	r.fault(v, "%s is %.100q; expected %s or an empty text", field, written(v), want)
}

// word reads a text that must be one of the words; absent counts as def, which "" forbids.
func (r *integrationReader) word(object *pyvalue.Value, field string, words []string, def string) string {
	v := object.Get(field)
	if v == nil && def != "" {
		return def
	}
	if v == nil || v.Kind != pyvalue.Str || !slices.Contains(words, v.Text) {
		r.fault(orRoot(v, object), "%s is %s; expected one of %s", field, shown(v), strings.Join(words, ", "))
		return ""
	}
	return v.Text
}

// shown is a value for a message.
func shown(v *pyvalue.Value) string {
	if v == nil {
		return "missing"
	}
	return fmt.Sprintf("%.100q", written(v))
}

// words reads a list of distinct words; ok is false when it is not one.
func words(v *pyvalue.Value, known []string) (list []string, ok bool) {
	list = []string{}
	if v == nil || v.Kind != pyvalue.List {
		return nil, false
	}
	for _, item := range v.List {
		if item.Kind != pyvalue.Str || !slices.Contains(known, item.Text) || slices.Contains(list, item.Text) {
			return nil, false
		}
		list = append(list, item.Text)
	}
	return list, true
}

func (r *integrationReader) flag(object *pyvalue.Value, field string, def bool) bool {
	v := object.Get(field)
	switch {
	case v == nil:
		return def
	case v.Kind != pyvalue.Bool:
		r.fault(v, "%s is %s; expected true or false", field, shown(v))
	}
	return v.Bool
}

// facts reads what concerns the framework as a whole.
func (r *integrationReader) facts(root *pyvalue.Value) {
	f := &r.value.Facts
	if v := root.Get("display_name"); v != nil {
		if v.Kind != pyvalue.Str || utf8.RuneCountInString(v.Text) > maxDisplayName || pyvalue.Strip(v.Text) != v.Text {
			r.fault(v, "display_name is %s; expected at most %d characters without blanks around them", shown(v), maxDisplayName)
		}
		f.DisplayName = v.Text
	}
	if v := root.Get("catalog_order"); v != nil && v.Kind != pyvalue.None {
		if v.Kind != pyvalue.Int || v.Int.Sign() < 0 || v.Int.Cmp(big.NewInt(maxCatalogOrder)) > 0 {
			r.fault(v, "catalog_order is %s; expected an integer from 0 to %d", shown(v), maxCatalogOrder)
		} else {
			order := int(v.Int.Int64())
			f.CatalogOrder = &order
		}
	}
	f.RequiredInputs = []string{}
	if v := root.Get("required_inputs"); v != nil {
		inputs, ok := words(v, integrationInputs)
		if !ok {
			r.fault(v, "required_inputs must be a list of distinct words of %s", strings.Join(integrationInputs, ", "))
		}
		f.RequiredInputs = inputs
	}
	f.NativeValidation = r.flag(root, "native_validation", false)
	f.AlgorithmHook = r.flag(root, "algorithm_hook", true)
	f.CPUOnly = r.flag(root, "cpu_only", false)
	f.DataPrepJobs = r.flag(root, "data_prep_jobs", false)
	r.switches(root.Get("capability_switches"))
	r.descriptors(root.Get("metric_descriptors"))
}

func (r *integrationReader) switches(v *pyvalue.Value) {
	r.value.Facts.CapabilitySwitches = []CapabilitySwitch{}
	if v == nil {
		return
	}
	if v.Kind != pyvalue.List || len(v.List) > maxSwitches {
		r.fault(v, "capability_switches must be a list of at most %d objects", maxSwitches)
		return
	}
	for _, item := range v.List {
		if !r.object(item, switchFields, "a capability switch") {
			continue
		}
		s := CapabilitySwitch{Capability: r.word(item, "capability", observationCapabilities, ""), When: r.word(item, "when", switchConditions, "")}
		key := item.Get("key")
		if key == nil || key.Kind != pyvalue.Str || utf8.RuneCountInString(key.Text) > maxSwitchKey || !dottedPath.MatchString(key.Text) {
			r.fault(orRoot(key, item), "the key of a capability switch is %s; expected a dotted path of at most %d characters", shown(key), maxSwitchKey)
			continue
		}
		s.Key = key.Text
		r.value.Facts.CapabilitySwitches = append(r.value.Facts.CapabilitySwitches, s)
	}
}

func (r *integrationReader) descriptors(v *pyvalue.Value) {
	r.value.Facts.MetricDescriptors = map[string]MetricDescriptor{}
	if v == nil {
		return
	}
	if v.Kind != pyvalue.Map || len(v.Items) > maxDescriptors {
		r.fault(v, "metric_descriptors must be an object of at most %d metrics", maxDescriptors)
		return
	}
	for _, it := range v.Items {
		if n := utf8.RuneCountInString(it.Key.Text); n < 1 || n > maxDescriptorText {
			r.fault(it.Key, "the name of a metric has %d characters; expected 1 to %d", n, maxDescriptorText)
			continue
		}
		if r.object(it.Value, descriptorFields, "a metric descriptor") {
			r.value.Facts.MetricDescriptors[it.Key.Text] = r.descriptor(it.Value)
		}
	}
}

func (r *integrationReader) descriptor(object *pyvalue.Value) MetricDescriptor {
	d := MetricDescriptor{
		"direction": r.word(object, "direction", metricDirections, "neutral"),
		"display":   r.word(object, "display", descriptorDisplays, "number"),
	}
	for _, it := range object.Items {
		switch field, v := it.Key.Text, it.Value; {
		case field == "direction" || field == "display":
		case field == "cadence_seconds":
			d[field] = r.cadence(v)
		case v.Kind != pyvalue.Str || utf8.RuneCountInString(v.Text) > maxDescriptorText:
			r.fault(v, "%s of a metric descriptor is %s; expected a text of at most %d characters", field, shown(v), maxDescriptorText)
		default:
			d[field] = v.Text
		}
	}
	if d["unit"] == "fraction" && d["display"] != "ratio" || d["unit"] == "percent" && d["display"] != "percent" {
		r.fault(object, "the unit %v does not go with the display %v: a fraction needs ratio, a percent needs percent", d["unit"], d["display"])
	}
	return d
}

// cadence reads a positive finite number, kept as Python would write it.
func (r *integrationReader) cadence(v *pyvalue.Value) json.Number {
	switch {
	case v.Kind == pyvalue.Int && v.Int.Sign() > 0 && v.Int.BitLen() <= 1023:
		return json.Number(v.Int.String())
	case v.Kind == pyvalue.Float && v.Float > 0 && !math.IsInf(v.Float, 0):
		return json.Number(pyvalue.FloatText(v.Float))
	}
	r.fault(v, "cadence_seconds is %s; expected a positive number", shown(v))
	return "0"
}
