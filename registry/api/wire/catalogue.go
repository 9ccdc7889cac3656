package wire

import "github.com/gatehouse-registry/gatehouse/admission/catalogue"

// Catalogue is the answer of GET /api/recipes (wire.md 5.1). Below the keys "gatehouse" of the answer and of each row
// stands what our own client reads beside what the real clients compare: with ?facts=1 the whole catalogue.Entry of each
// recipe. catalogue.ParseAnswer makes a catalogue of it again.
type Catalogue = catalogue.Answer
