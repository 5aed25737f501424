package tools

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/jsonschema"
	"github.com/parley-voice/parley/pipeline/safedial"
)

const (
	maxTools        = 32
	maxDestinations = 64
	maxText         = 2000 // characters of a description or a filler
	defaultTimeout  = 8 * time.Second
	maxTimeout      = 20 // seconds
)

// Patterns of names, phone numbers and header names.
var (
	namePattern   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	numberPattern = regexp.MustCompile(`^\+?[0-9]{3,15}$`)
	headerPattern = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$") // RFC 9110, section 5.6.2
)

// Types of tools.
const (
	EndCall        = "end_call"
	TransferCall   = "transfer_call"
	SendDTMF       = "send_dtmf"
	LeaveVoicemail = "leave_voicemail"
	HTTP           = "http"
)

// A Definition configures a tool of an agent. The fields from Name on are only for type http.
type Definition struct {
	Type         string        `json:"type"                   yaml:"type"`
	Description  string        `json:"description,omitempty"  yaml:"description"` // replaces the default description
	Destinations []Destination `json:"destinations,omitempty" yaml:"destinations"`

	Name       string                  `json:"name,omitempty"       yaml:"name"`
	Parameters json.RawMessage         `json:"parameters,omitempty" yaml:"-"`
	URL        string                  `json:"url,omitempty"        yaml:"url"`
	Method     string                  `json:"method,omitempty"     yaml:"method"` // empty means POST
	Headers    map[string]media.Secret `json:"-"                    yaml:"headers"`
	TimeoutS   float64                 `json:"timeout_s,omitempty"  yaml:"timeout_s"` // seconds, 1 to 20; 0 means 8
	Filler     string                  `json:"filler,omitempty"     yaml:"filler"`
}

// A Destination is a target of transfers.
type Destination struct {
	Label  string `json:"label,omitempty" yaml:"label"` // name of the destination for the model; empty means the number
	Number string `json:"number"          yaml:"number"`
}

func (d Destination) name() string { return cmp.Or(d.Label, d.Number) }

// Check validates the tools of an agent.
func Check(all []Definition, rules safedial.Rules) error {
	_, err := Build(all, rules, nil)
	return err
}

// Unreachable says which functions send requests that fail, because rules do not allow their hosts. It looks up no names:
// the address of a name is checked at each connection.
func Unreachable(all []Definition, rules safedial.Rules) (found []string) {
	for i, d := range all {
		u, err := url.Parse(d.URL)
		if d.Type != HTTP || err != nil {
			continue
		}
		if port := cmp.Or(u.Port(), map[string]string{"http": "80"}[u.Scheme], "443"); !rules.MayReach(u.Hostname(), port) {
			found = append(found, fmt.Sprintf("tools[%d]: %s: %s is not public, so requests fail: add it to PARLEY_TOOL_HOSTS",
				i, d.Name, u.Hostname()))
		}
	}
	return found
}

// Build creates the functions of definitions. client sends the HTTP requests.
func Build(all []Definition, rules safedial.Rules, client *http.Client) ([]pipeline.Function, error) {
	if len(all) > maxTools {
		return nil, fmt.Errorf("tools: got %d; at most %d are accepted", len(all), maxTools)
	}
	var functions []pipeline.Function
	for i, d := range all {
		f, err := d.build(rules, client)
		if err != nil {
			return nil, fmt.Errorf("tools[%d]: %w", i, err)
		}
		functions = append(functions, f)
	}
	if _, err := NewSet(functions); err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	return functions, nil
}

func (d Definition) build(rules safedial.Rules, client *http.Client) (pipeline.Function, error) {
	if n := len([]rune(d.Description)); n > maxText {
		return nil, fmt.Errorf("description has %d characters; at most %d are accepted", n, maxText)
	}
	if d.Type != HTTP && (d.Name != "" || d.URL != "" || len(d.Parameters) > 0 || len(d.Headers) > 0) {
		return nil, fmt.Errorf("%s: only type http has name, url, parameters and headers", d.Type)
	}
	if d.Type != TransferCall && len(d.Destinations) > 0 {
		return nil, fmt.Errorf("%s: only type transfer_call has destinations", d.Type)
	}
	switch d.Type {
	case EndCall:
		return endCall(d), nil
	case TransferCall:
		return d.transfer()
	case SendDTMF:
		return sendDTMF(d), nil
	case LeaveVoicemail:
		return leaveVoicemail(d), nil
	case HTTP:
		return d.http(rules, client)
	}
	return nil, fmt.Errorf("type %q: use one of %s", d.Type,
		strings.Join([]string{EndCall, TransferCall, SendDTMF, LeaveVoicemail, HTTP}, ", "))
}

func (d Definition) http(rules safedial.Rules, client *http.Client) (pipeline.Function, error) {
	method := cmp.Or(d.Method, http.MethodPost)
	switch {
	case !namePattern.MatchString(d.Name):
		return nil, fmt.Errorf("name %q: use 1 to 64 letters, digits, - or _", d.Name)
	case d.Description == "":
		return nil, fmt.Errorf("%s: description is missing: it tells the model what the function is for", d.Name)
	case !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, method):
		return nil, fmt.Errorf("%s: method %q: use GET, POST, PUT, PATCH or DELETE", d.Name, method)
	case d.TimeoutS != 0 && !(d.TimeoutS >= 1 && d.TimeoutS <= maxTimeout):
		return nil, fmt.Errorf("%s: timeout_s is %v: use 1 to %d", d.Name, d.TimeoutS, maxTimeout)
	case len([]rune(d.Filler)) > maxText:
		return nil, fmt.Errorf("%s: filler: at most %d characters are accepted", d.Name, maxText)
	}
	u, err := checkURL(d.URL, rules)
	if err != nil {
		return nil, fmt.Errorf("%s: url: %w", d.Name, err)
	}
	if err := checkHeaders(d.Headers); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name, err)
	}
	parameters := d.Parameters
	if len(parameters) == 0 {
		parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	var query url.Values
	if inQuery(method) {
		query = u.Query()
	}
	if err := checkParameters(parameters, query); err != nil {
		return nil, fmt.Errorf("%s: parameters: %w", d.Name, err)
	}
	timeout := defaultTimeout
	if d.TimeoutS != 0 {
		timeout = time.Duration(d.TimeoutS * float64(time.Second))
	}
	return &request{
		spec: pipeline.Tool{Name: d.Name, Description: d.Description, Parameters: parameters},
		url:  u, method: method, headers: d.Headers, timeout: timeout, filler: d.Filler, client: client,
	}, nil
}

// checkParameters validates the schema of the arguments. query holds the parameters in the URL, which no
// argument may have; nil if the arguments go into the body.
func checkParameters(parameters json.RawMessage, query url.Values) error {
	if _, err := jsonschema.Parse(parameters); err != nil {
		return err
	}
	var top struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(parameters, &top) != nil || top.Type != "object" {
		return errors.New("the top-level type must be object")
	}
	for _, name := range slices.Sorted(maps.Keys(top.Properties)) {
		if hasParam(query, name) {
			return fmt.Errorf("%q is already set in the url", name)
		}
	}
	return nil
}

// checkURL validates the address of a function. It does not check whether the host is public: safedial
// checks that at each connection, after name resolution.
func checkURL(text string, rules safedial.Rules) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return nil, errors.New("use an address like https://host/path")
	case u.User != nil:
		return nil, errors.New("user and password are not accepted; use headers")
	case u.Scheme != "https" && (u.Scheme != "http" || !rules.Anywhere && !rules.Allows(u.Hostname(), cmp.Or(u.Port(), "80"))):
		return nil, errors.New("use https:// (http:// only for hosts in PARLEY_TOOL_HOSTS)")
	}
	return u, nil
}

func checkHeaders(headers map[string]media.Secret) error {
	for name, value := range headers {
		if !headerPattern.MatchString(name) {
			return fmt.Errorf("headers: %q is not a valid header name", name)
		}
		if strings.ContainsFunc(string(value), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return fmt.Errorf("headers: %s contains a control character", name)
		}
		if slices.Contains([]string{"Host", "Content-Length", "Transfer-Encoding", "Connection"}, http.CanonicalHeaderKey(name)) {
			return fmt.Errorf("headers: %s cannot be set", name)
		}
	}
	return nil
}
