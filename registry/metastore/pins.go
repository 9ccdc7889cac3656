package metastore

import (
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
)

// pinColumns are those of a pack that a job or a run uses, in both tables of them.
const pinColumns = `position, pack, version, kind, content, tree, manifest, runtime_supplied`

// pinValues are the values of pinColumns for the pin at a position.
func pinValues(position int, p receipt.Pin) []any {
	return []any{position, p.ID, p.Version, p.Kind, p.Content.String(), p.Tree.String(), p.Manifest.String(), p.RuntimeSupplied}
}

func scanPin(r row) (p receipt.Pin, err error) {
	var position int
	err = r.Scan(&position, &p.ID, &p.Version, &p.Kind, digestColumn{&p.Content}, digestColumn{&p.Tree}, digestColumn{&p.Manifest}, &p.RuntimeSupplied)
	return p, err
}
