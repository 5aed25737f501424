package pipeline_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/parley-voice/parley/pipeline"
)

// A decoded value has the kinds of fields that messages of providers have. Its keys are digits, because the case of
// letters counts for DecodeJSON only.
type decoded struct {
	Text   string          `json:"1"`
	Audio  []byte          `json:"2"`
	Start  float64         `json:"3"`
	Final  bool            `json:"4"`
	Times  []int           `json:"5"`
	Extra  json.RawMessage `json:"6"`
	Nested *struct {
		Words []string `json:"1"`
	} `json:"7"`
}

func FuzzDecodeJSON(f *testing.F) {
	for _, s := range []string{
		`{"1":"hi","2":"AAEC","3":1.5,"4":true,"5":[1,2],"6":{"a":1},"7":{"1":["a"]}}`, `{"1":"first","1":"second"}`,
		`{"1":null,"2":null,"5":null,"6":null,"7":null}`, `{"1":5,"4":true}`, "{\"1\":\"\xff\"}", `{"1":"\ud800"}`, `{"3":1e999}`,
		`{"1":"a"} x`, `{"1":"a"`, ``, `null`, `[]`, `{"5":[1.5]}`, `{"2":"A="}`, `{"2":""}`, `{"5":[]}`, `{"7":{}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var want decoded
		wantErr := json.Unmarshal(b, &want)
		got, err := pipeline.DecodeJSON[decoded](b)
		if !reflect.DeepEqual(got, want) || (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Errorf("got %+v, %v; want %+v, %v", got, err, want, wantErr)
		}
	})
}
