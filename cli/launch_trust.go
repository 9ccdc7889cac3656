package cli

import (
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
)

// maxTrust bounds a trust file; receipt.ParseTrust refuses more.
const maxTrust = 64 * limit.KiB

// trust reads the keys whose receipts count: of the flag, else of GATEHOUSE_TRUST, else none.
func (e *Env) trust(flag string) (receipt.TrustSet, error) {
	path := flag
	if path == "" {
		path = e.Vars["GATEHOUSE_TRUST"]
	}
	if path == "" {
		return receipt.TrustSet{}, nil
	}
	src, err := readFile(path, maxTrust+1)
	if err != nil {
		return receipt.TrustSet{}, err
	}
	set, err := receipt.ParseTrust(src)
	if err != nil {
		return set, fmt.Errorf("%s: %w", path, err)
	}
	return set, nil
}
