package pack

import (
	"encoding/json"
	"testing"
)

func TestParamsReadBack(t *testing.T) {
	const src = `{"lr":{"name":"lr","type":"float","path":"optim.lr","doc":"","group":"","required":false,"default":1e-06,` +
		`"minimum":0,"maximum":null,"exclusive_minimum":true,"choices":[1,"a",1.0],"path_overrides":[["1.0","o.lr"]],"i18n":{}},` +
		`"a":{"name":"a","type":"str","path":"","doc":"","group":"","required":true,"default":null,"minimum":null,` +
		`"maximum":null,"exclusive_minimum":false,"choices":null,"path_overrides":null,"i18n":{"zh":{"doc":"x"}}}}`
	var params Table[Param]
	if err := json.Unmarshal([]byte(src), &params); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != src {
		t.Errorf("read back as\n%s\nwant\n%s", got, src)
	}
	for _, bad := range []string{`[]`, `{"a":1}`, `"x"`} {
		if err := json.Unmarshal([]byte(bad), &params); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}
