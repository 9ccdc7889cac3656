package pyvalue

import (
	"math"
	"math/big"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest/canonical"
)

func i(n int64) *Value        { return &Value{Kind: Int, Int: big.NewInt(n)} }
func f(x float64) *Value      { return &Value{Kind: Float, Float: x} }
func b(x bool) *Value         { return &Value{Kind: Bool, Bool: x} }
func list(v ...*Value) *Value { return &Value{Kind: List, List: v} }
func m(kv ...*Value) *Value {
	v := &Value{Kind: Map}
	for n := 0; n < len(kv); n += 2 {
		v.Items = append(v.Items, Item{kv[n], kv[n+1]})
	}
	return v
}
func date(s string) *Value     { return &Value{Kind: Date, Text: s} }
func datetime(s string) *Value { return &Value{Kind: DateTime, Text: s} }

// The wanted texts are what Python 3.11 answers.
func TestPythonTexts(t *testing.T) {
	tests := []struct {
		v                      *Value
		str, repr, textOf, typ string
	}{
		{nil, "None", "None", "", "NoneType"}, {&Value{}, "None", "None", "", "NoneType"},
		{b(true), "True", "True", "True", "bool"}, {b(false), "False", "False", "", "bool"},
		{i(0), "0", "0", "", "int"}, {i(-7), "-7", "-7", "-7", "int"},
		{f(0), "0.0", "0.0", "", "float"}, {f(1), "1.0", "1.0", "1.0", "float"}, {f(1e16), "1e+16", "1e+16", "1e+16", "float"}, {f(123456789012345680), "1.2345678901234568e+17", "1.2345678901234568e+17", "1.2345678901234568e+17", "float"},
		{f(1e-5), "1e-05", "1e-05", "1e-05", "float"}, {f(0.0001), "0.0001", "0.0001", "0.0001", "float"}, {f(math.Inf(-1)), "-inf", "-inf", "-inf", "float"}, {f(math.NaN()), "nan", "nan", "nan", "float"}, {f(1e22), "1e+22", "1e+22", "1e+22", "float"}, {f(5e-324), "5e-324", "5e-324", "5e-324", "float"},
		{NewStr(" \u3000a b\x1c\n"), " \u3000a b\x1c\n", `' \u3000a b\x1c\n'`, "a b", "str"},
		{NewStr("it's"), "it's", `"it's"`, "it's", "str"}, {NewStr(`it's "x"`), `it's "x"`, `'it\'s "x"'`, `it's "x"`, "str"}, {NewStr(""), "", "''", "", "str"},
		{NewStr("\xed\xa0\x80\U0001f680\u00ad\u200b\x7f\u0080\\"), "\xed\xa0\x80\U0001f680\u00ad\u200b\x7f\u0080\\", "'\\ud800\U0001f680\\xad\\u200b\\x7f\\x80\\\\'", "\xed\xa0\x80\U0001f680\u00ad\u200b\x7f\u0080\\", "str"},
		{&Value{Kind: Bytes, Text: "a'\x00\xff\n"}, `b"a'\x00\xff\n"`, `b"a'\x00\xff\n"`, `b"a'\x00\xff\n"`, "bytes"},
		{date("2024-02-09"), "2024-02-09", "datetime.date(2024, 2, 9)", "2024-02-09", "date"},
		{datetime("2024-02-09 00:00:00"), "2024-02-09 00:00:00", "datetime.datetime(2024, 2, 9, 0, 0)", "2024-02-09 00:00:00", "datetime"},
		{datetime("2024-02-09 01:02:03.000040+05:30"), "2024-02-09 01:02:03.000040+05:30", "datetime.datetime(2024, 2, 9, 1, 2, 3, 40, tzinfo=datetime.timezone(datetime.timedelta(seconds=19800)))", "2024-02-09 01:02:03.000040+05:30", "datetime"},
		{datetime("2024-02-09 01:02:00-01:00"), "2024-02-09 01:02:00-01:00", "datetime.datetime(2024, 2, 9, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(days=-1, seconds=82800)))", "2024-02-09 01:02:00-01:00", "datetime"},
		{datetime("2024-02-09 01:02:00+00:00"), "2024-02-09 01:02:00+00:00", "datetime.datetime(2024, 2, 9, 1, 2, tzinfo=datetime.timezone.utc)", "2024-02-09 01:02:00+00:00", "datetime"},
		{list(), "[]", "[]", "", "list"}, {list(NewStr("a"), i(1)), "['a', 1]", "['a', 1]", "['a', 1]", "list"},
		{m(), "{}", "{}", "", "dict"}, {m(NewStr("a"), list(nil)), "{'a': [None]}", "{'a': [None]}", "{'a': [None]}", "dict"},
		{&Value{Kind: Set}, "set()", "set()", "", "set"}, {&Value{Kind: Set, List: []*Value{i(1)}}, "{1}", "{1}", "{1}", "set"},
		{&Value{Kind: Tuple, List: []*Value{i(1)}}, "(1,)", "(1,)", "(1,)", "tuple"}, {&Value{Kind: Tuple, List: []*Value{i(1), i(2)}}, "(1, 2)", "(1, 2)", "(1, 2)", "tuple"},
	}
	for _, tt := range tests {
		if s, r, x, n := tt.v.PyStr(), tt.v.PyRepr(), tt.v.TextOf(), tt.v.TypeName(); s != tt.str || r != tt.repr || x != tt.textOf || n != tt.typ {
			t.Errorf("got str %q, repr %q, text %q, type %s; want %q, %q, %q, %s", s, r, x, n, tt.str, tt.repr, tt.textOf, tt.typ)
		}
	}
}

func TestStrip(t *testing.T) {
	spaces := "\t\n\v\f\r\x1c\x1d\x1e\x1f \u0085\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"
	if got := Strip(spaces + "a b" + spaces); got != "a b" {
		t.Errorf("got %q", got)
	}
	for _, keep := range []string{"\u200b", "\ufeff", "\u180e", "\x00", "\x1b"} {
		if Strip(keep) != keep {
			t.Errorf("%q is no white space in Python", keep)
		}
	}
}

// TestHashKey holds which values Python takes for one key of a dict.
func TestHashKey(t *testing.T) {
	large := &Value{Kind: Int, Int: new(big.Int).Exp(big.NewInt(10), big.NewInt(22), nil)}
	classes := [][]*Value{
		{i(1), f(1), b(true)}, {i(0), f(0), f(math.Copysign(0, -1)), b(false)}, {NewStr("1")}, {nil, {}}, {NewStr("none")},
		{large, f(1e22)}, {f(1.5)}, {f(math.Inf(1))}, {f(math.Inf(-1))}, {f(math.NaN())}, {i(9007199254740993)}, {f(9007199254740992), i(9007199254740992)},
		{{Kind: Bytes, Text: "1"}}, {date("2024-01-01")}, {datetime("2024-01-01 00:00:00")}, {NewStr("2024-01-01")},
		{datetime("2024-01-01 00:00:00+00:00"), datetime("2024-01-01 01:30:00+01:30"), datetime("2023-12-31 23:00:00-01:00")}, {datetime("2024-01-01 00:00:00.000001+00:00")},
		{{Kind: Tuple, List: []*Value{i(1), NewStr("a")}}, {Kind: Tuple, List: []*Value{b(true), NewStr("a")}}}, {{Kind: Tuple, List: []*Value{NewStr("1"), NewStr("a")}}},
	}
	seen := make(map[string]int)
	for n, class := range classes {
		for _, v := range class {
			key, ok := v.HashKey()
			if !ok {
				t.Errorf("%s is a key in Python", v.PyRepr())
			}
			if at, dup := seen[key]; dup && at != n {
				t.Errorf("%s has the key of class %d", v.PyRepr(), at)
			}
			seen[key] = n
		}
		if len(seen) != n+1 {
			t.Fatalf("class %d has %d keys", n, len(seen)-n)
		}
	}
	for _, v := range []*Value{list(), m(), {Kind: Set}, {Kind: Tuple, List: []*Value{list()}}} {
		if _, ok := v.HashKey(); ok {
			t.Errorf("%s is no key in Python", v.PyRepr())
		}
	}
}

func TestGet(t *testing.T) {
	v := m(NewStr("a"), nil, i(1), NewStr("x"), NewStr("b"), i(2))
	if v.Get("b").Int.Int64() != 2 || v.Get("1") != nil || v.Get("c") != nil || i(1).Get("a") != nil {
		t.Error("Get finds the wrong value")
	}
}

func TestLargeRepr(t *testing.T) {
	v := list()
	for range 50000 {
		v.List = append(v.List, NewStr("abcdef"))
	}
	if n := len(v.PyRepr()); n > maxRepr+100 {
		t.Errorf("%d bytes", n)
	}
	deep := list()
	for range 100_000 {
		deep = list(deep)
	}
	if n := len(deep.PyRepr()); n > 2*maxRepr+100 {
		t.Errorf("%d bytes", n)
	}
}

func TestCanonicalJSON(t *testing.T) {
	v := m(NewStr("b"), list(i(1), f(1), nil, &Value{Kind: Tuple, List: []*Value{b(true)}}), NewStr("a"), m(i(10), NewStr("x"), i(9), NewStr("y")))
	got, err := canonical.Python(v)
	if want := `{"a":{"9":"y","10":"x"},"b":[1,1.0,null,[true]]}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	for _, v := range []*Value{date("2024-01-01"), datetime("2024-01-01 00:00:00"), {Kind: Bytes}, {Kind: Set}, m(date("2024-01-01"), i(1))} {
		if got, err := canonical.Python(v); err == nil {
			t.Errorf("%s is written as %s", v.PyRepr(), got)
		}
	}
}
