package server

import (
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/auth/oidc"
)

// workloadIssuer is an issuer of identity documents and what they are good for here.
type workloadIssuer struct {
	Issuer   string         `yaml:"issuer"`
	Audience string         `yaml:"audience"`
	CAFile   string         `yaml:"ca_file"`
	Rules    []workloadRule `yaml:"rules"`
}

type workloadRule struct {
	Claims map[string]string `yaml:"claims"`
	Robot  string            `yaml:"robot"`
	TTL    time.Duration     `yaml:"ttl"`
}

// access checks who may reach what, and gives the rules of workload identity.
func (k *checker) access() []registry.WorkloadRule {
	for i, pattern := range k.c.AnonymousRead {
		if err := auth.CheckPattern(pattern); err != nil {
			k.fault("anonymous_read", "[%d]: %w", i, err)
		}
	}
	if k.c.RobotTTL == 0 {
		k.fault("robot_ttl", "a robot needs time to live")
	}
	var rules []registry.WorkloadRule
	seen := map[string]bool{}
	for i, w := range k.c.WorkloadIdentity {
		if err := w.issuer().Check(); err != nil {
			k.fault("workload_identity", "[%d]: %w", i, err)
		}
		if seen[w.Issuer] {
			k.fault("workload_identity", "[%d]: issuer %s is named twice; put its rules together", i, w.Issuer)
		}
		seen[w.Issuer] = true
		for j, r := range w.Rules {
			rule := registry.WorkloadRule{Issuer: w.Issuer, Claims: r.Claims, Robot: r.Robot, TTL: r.TTL}
			if err := rule.Check(); err != nil {
				k.fault("workload_identity", "[%d].rules[%d]: %w", i, j, err)
			}
			rules = append(rules, rule)
		}
	}
	return rules
}

func (w workloadIssuer) issuer() oidc.Issuer {
	return oidc.Issuer{URL: w.Issuer, Audience: w.Audience, CAFile: w.CAFile}
}

// workloads makes the verifier of identity documents, nil where no issuer is configured.
func (c Config) workloads() (registry.WorkloadVerifier, error) {
	if len(c.WorkloadIdentity) == 0 {
		return nil, nil
	}
	issuers := make([]oidc.Issuer, len(c.WorkloadIdentity))
	for i, w := range c.WorkloadIdentity {
		issuers[i] = w.issuer()
	}
	return oidc.New(issuers, time.Now)
}
