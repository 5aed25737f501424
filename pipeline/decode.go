package pipeline

import (
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"
)

// DecodeJSON decodes a message of a provider like json.Unmarshal, but the case of keys counts. It is for messages of which a
// call receives many per second: go-json-experiment takes about half the CPU time. If it fails, for example on a duplicate
// key, encoding/json decodes the message, so errors are those of encoding/json.
func DecodeJSON[T any](b []byte) (T, error) {
	var fast T
	if jsonv2.Unmarshal(b, &fast) == nil {
		return fast, nil
	}
	var v T
	err := json.Unmarshal(b, &v)
	return v, err
}
