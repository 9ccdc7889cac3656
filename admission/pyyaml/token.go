package pyyaml

// tokenKind is the sort of a token. The names in messages are kindNames.
type tokenKind uint8

const (
	tokStreamEnd tokenKind = iota
	tokDirective
	tokDocumentStart
	tokDocumentEnd
	tokBlockSequence // the place where a block sequence begins
	tokBlockMapping  // the place where a block mapping begins
	tokBlockEnd      // the indentation of a block collection ends
	tokFlowSequence
	tokFlowSequenceEnd
	tokFlowMapping
	tokFlowMappingEnd
	tokBlockEntry // "-"
	tokFlowEntry  // ","
	tokKey        // "?", or the place where a key without one begins
	tokValue      // ":"
	tokAlias
	tokAnchor
	tokTag
	tokScalar
)

var kindNames = [...]string{
	"the end of the text", "a directive", "the start of a document ('---')", "the end of a document ('...')",
	"a list", "a map", "less indentation", "'['", "']'", "'{'", "'}'", "'-'", "','", "a key", "':'",
	"an alias", "an anchor", "a tag", "a scalar",
}

// String names the kind in messages.
func (k tokenKind) String() string { return kindNames[k] }

// token is one piece of a document.
type token struct {
	kind   tokenKind
	plain  bool   // tokScalar: without quotes and not in a block
	short  bool   // tokTag: the handle counts
	handle string // tokTag: the handle. tokDirective: YAML, TAG or another name
	value  string // tokScalar: the text. tokAlias, tokAnchor: the name. tokTag: the suffix. %YAML: the major number. %TAG: the handle
	prefix string // %TAG: what the handle stands for
	start  mark
	end    mark
}
