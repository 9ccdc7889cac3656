package moving

// Progress is told how far something is. A nil function is none.
type Progress struct {
	Log   func(line string) // what happens, for a person
	Found func(bytes int64) // bytes that will be copied
	Moved func(bytes int64) // bytes that were
}

// withDefaults is p with functions that do nothing where there are none.
func (p Progress) withDefaults() Progress {
	if p.Log == nil {
		p.Log = func(string) {}
	}
	if p.Found == nil {
		p.Found = func(int64) {}
	}
	if p.Moved == nil {
		p.Moved = func(int64) {}
	}
	return p
}
