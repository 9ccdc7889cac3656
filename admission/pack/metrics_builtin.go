package pack

import "github.com/gatehouse-registry/gatehouse/admission/dialect"

// builtinSemantics says how the clients read a metric by its canonical name when a recipe doesn't say (packs.md 5.4).
// The tables are those of StarForge 0.3.56 and TunePlane 0.4.0.
func builtinSemantics(d dialect.Dialect, metric string) (Semantics, bool) {
	if s, ok := dialectSemantics[d][metric]; ok {
		return s, true
	}
	s, ok := sharedSemantics[metric]
	return s, ok
}

// sharedSemantics are alike in both dialects.
var sharedSemantics = map[string]Semantics{
	"bench/score":                  {"higher", "number"},
	"train/accuracy":               {"higher", "ratio"},
	"train/advantages/mean":        {"neutral", "number"},
	"train/clip_frac":              {"lower", "ratio"},
	"train/entropy":                {"neutral", "number"},
	"train/loss":                   {"lower", "number"},
	"train/lr":                     {"neutral", "number"},
	"train/margin":                 {"higher", "number"},
	"train/opsd_hint_len_mean":     {"neutral", "number"},
	"train/opsd_kl_clip_frac":      {"lower", "ratio"},
	"train/opsd_response_len_mean": {"neutral", "number"},
	"train/response_length":        {"neutral", "number"},
	"train/return":                 {"higher", "number"},
	"train/reward":                 {"higher", "number"},
	"train/reward_chosen":          {"neutral", "number"},
	"train/reward_rejected":        {"neutral", "number"},
	"train/reward_std":             {"neutral", "number"},
	"train/reward_zero_std_frac":   {"lower", "ratio"},
	"train/score":                  {"higher", "number"},
	"train/token_accuracy":         {"higher", "ratio"},
	"train/token_mult_prob_error":  {"lower", "number"},
	"train/truncated_ratio":        {"lower", "ratio"},
	"train/value":                  {"neutral", "number"},
	"train/value_explained_var":    {"higher", "number"},
	"train/value_loss":             {"lower", "number"},
	"validation/accuracy":          {"higher", "ratio"},
	"validation/loss":              {"lower", "number"},
	"validation/margin":            {"higher", "number"},
	"validation/reward":            {"higher", "number"},
	"validation/token_accuracy":    {"higher", "ratio"},
}

// dialectSemantics are read differently by the dialects, or known to one only.
var dialectSemantics = map[dialect.Dialect]map[string]Semantics{
	dialect.Forge: {
		"train/grad_norm":       {"lower", "number"},
		"train/kl_penalty":      {"lower", "number"},
		"validation/kl_penalty": {"lower", "number"},
	},
	dialect.TunePlane: {
		"train/grad_norm":                 {"neutral", "number"},
		"train/kl_penalty":                {"neutral", "number"},
		"train/odds_ratio":                {"neutral", "number"},
		"train/sft_loss":                  {"lower", "number"},
		"validation/kl_penalty":           {"neutral", "number"},
		"validation/response_length":      {"neutral", "number"},
		"validation/reward_std":           {"neutral", "number"},
		"validation/reward_zero_std_frac": {"lower", "ratio"},
	},
}
