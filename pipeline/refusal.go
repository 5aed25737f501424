package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	maxErrorBody = 64 << 10 // maximum number of bytes that are read
	maxErrorText = 200      // maximum number of characters that are kept
	minSecret    = 6        // shorter header values and parameters are not treated as secrets
)

// RefusalText returns the message in a provider's error response, redacted as in Redact. sent holds the headers of
// the request. The rest of the body is dropped, because it may repeat words of the caller.
func RefusalText(resp *http.Response, sent http.Header) string {
	text := resp.Header.Get("Dg-Error") // header of Deepgram for refused WebSockets
	if text == "" && resp.Body != nil {
		if b, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)); err == nil || len(b) > 0 {
			text = ErrorMessage(b)
		}
	}
	var address *url.URL
	if resp.Request != nil {
		address = resp.Request.URL
	}
	return Redact(text, sent, address)
}

// ErrorMessage returns the message in the JSON of a provider's error, or "" if it has none.
// The known shapes are {"error":{"message":…}} (OpenAI, Anthropic, Google), {"error":…}
// (AssemblyAI), {"err_msg":…} (Deepgram), {"detail":{"message":…}} (ElevenLabs),
// {"message":…}, {"error_message":…} (Soniox), {"title":…} (Cartesia) and the lists of
// refused fields that FastAPI sends (Mistral, vLLM).
func ErrorMessage(body []byte) string {
	var all []json.RawMessage
	if json.Unmarshal(body, &all) == nil && len(all) > 0 { // Gemini sends a streamed error within an array
		body = all[0]
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return ""
	}
	for _, name := range []string{"err_msg", "error_message", "message", "title", "error", "detail"} {
		var text string
		if json.Unmarshal(fields[name], &text) == nil && text != "" {
			return text
		}
	}
	for _, name := range []string{"error", "detail"} {
		var nested struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(fields[name], &nested) == nil && nested.Message != "" {
			return nested.Message
		}
	}
	return cmp.Or(fieldErrors(fields["detail"]), fieldErrors(fields["message"]))
}

// fieldErrors returns the fields and messages of a list of refused fields. raw is the list, or an object with the
// list in "detail".
func fieldErrors(raw json.RawMessage) string {
	type fieldError struct {
		Path    []any  `json:"loc"`
		Message string `json:"msg"`
	}
	var nested struct {
		Detail []fieldError `json:"detail"`
	}
	if json.Unmarshal(raw, &nested.Detail) != nil && json.Unmarshal(raw, &nested) != nil {
		return ""
	}
	var all []string
	for _, e := range nested.Detail {
		var path []string
		for _, name := range e.Path {
			path = append(path, fmt.Sprint(name))
		}
		all = append(all, strings.Join(path, ".")+": "+e.Message)
	}
	return strings.Join(all, "; ")
}

// Redact returns a provider's text, safe to store and show: at most 200 characters, without control characters. It
// replaces secrets of at least 6 characters: the header values in sent, and the URL parameters of address whose names
// contain "key", "token", "secret", "auth", "password" or "sig" (as in "signature").
func Redact(text string, sent http.Header, address *url.URL) string {
	for name, values := range sent {
		if name == "Accept" || name == "Content-Type" {
			continue
		}
		for _, v := range values {
			for part := range strings.FieldsSeq(v) { // as in "Bearer KEY"
				text = replaceSecret(text, part)
			}
		}
	}
	if address != nil {
		for name, values := range address.Query() {
			name = strings.ToLower(name)
			for _, v := range values {
				if holdsSecret(name) {
					text = replaceSecret(text, v)
				}
			}
		}
	}
	clean := []rune(Clean(text))
	return string(clean[:min(len(clean), maxErrorText)])
}

func holdsSecret(parameter string) bool {
	return slices.ContainsFunc([]string{"key", "token", "secret", "auth", "password", "sig"}, func(part string) bool {
		return strings.Contains(parameter, part)
	})
}

func replaceSecret(text, secret string) string {
	if len(secret) < minSecret {
		return text
	}
	return strings.ReplaceAll(text, secret, "[redacted]")
}
