package metastore

import (
	"database/sql"
	"errors"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// Activation implements registry.PackTx.
func (t *tx) Activation(kind string) (registry.Activation, error) {
	a := registry.Activation{Kind: kind}
	err := t.get(`SELECT generation, reference FROM activations WHERE kind = $1`, []any{kind}, &a.Generation, (*[]byte)(&a.Reference))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return a, err
}

// PutActivation implements registry.PackTx. It stores a as it is: the caller counts a.Generation.
func (t *tx) PutActivation(a registry.Activation, expected int64) error {
	n, err := t.exec(`UPDATE activations SET generation = $2, reference = $3 WHERE kind = $1 AND generation = $4`,
		a.Kind, a.Generation, []byte(a.Reference), expected)
	if err == nil && n == 0 && expected == 0 {
		n, err = t.exec(`INSERT INTO activations (kind, generation, reference) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			a.Kind, a.Generation, []byte(a.Reference))
	}
	if err != nil || n == 1 {
		return err
	}
	found, err := t.Activation(a.Kind)
	if err != nil {
		return err
	}
	return registry.Errorf(registry.Precondition, "the active %.60q has generation %d by now, expected was %d: read it again", a.Kind, found.Generation, expected)
}
