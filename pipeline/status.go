package pipeline

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

const (
	longestErrorBody = 64 << 10 // bytes that are read
	longestError     = 200      // characters that are told
)

// StatusError is the error of a provider's answer that is none, and closes it.
// It tells the message of an OpenAI-shaped error and nothing else of the body,
// which may repeat what the caller said.
func StatusError(resp *http.Response) error {
	defer resp.Body.Close()
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, longestErrorBody))
	if err != nil || json.Unmarshal(b, &body) != nil || body.Error.Message == "" {
		return fmt.Errorf("%s", resp.Status)
	}
	message := []rune(clean(body.Error.Message))
	return fmt.Errorf("%s: %s", resp.Status, string(message[:min(len(message), longestError)]))
}
