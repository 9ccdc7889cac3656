package pyyaml

import "github.com/gatehouse-registry/gatehouse/internal/pattern"

// implicit pairs a tag with the plain scalars that have it. Python's "$" also matches before a last line break.
type implicit struct {
	tag   string
	match pattern.Pattern
}

func form(tag, expr string) implicit {
	return implicit{tag, pattern.New(`^(?:` + expr + `)\n?$`)}
}

var (
	isBool  = form(tagBool, `yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF`)
	isFloat = form(tagFloat, `[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?`+
		`|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?`+
		`|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*`+
		`|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)`)
	isInt = form(tagInt, `[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+`+
		`|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+`)
	isNull      = form(tagNull, `~|null|Null|NULL|`)
	isTimestamp = form(tagTimestamp, `[0-9]{4}-[0-9]{2}-[0-9]{2}`+
		`|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?`+
		`(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?`)
	isMerge = form(tagMerge, `<<`)
	isValue = form(tagValue, `=`)
)

// candidates are the patterns that a scalar with this first byte may match.
func candidates(first byte) []implicit {
	switch first {
	case 'y', 'Y', 't', 'T', 'f', 'F', 'o', 'O':
		return []implicit{isBool}
	case 'n', 'N':
		return []implicit{isBool, isNull}
	case '-', '+', '.':
		return []implicit{isFloat, isInt}
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return []implicit{isFloat, isInt, isTimestamp}
	case '<':
		return []implicit{isMerge}
	case '~':
		return []implicit{isNull}
	case '=':
		return []implicit{isValue}
	}
	return nil
}

// resolve is the tag of a plain scalar in YAML 1.1.
func resolve(text string) string {
	if text == "" {
		return tagNull
	}
	for _, c := range candidates(text[0]) {
		if c.match.MatchString(text) {
			return c.tag
		}
	}
	return tagStr
}
