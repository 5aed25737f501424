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
	"github.com/parley-voice/parley/pipeline/egress"
	"github.com/parley-voice/parley/pipeline/jsonschema"
)

const (
	mostTools        = 32
	mostDestinations = 64
	longestText      = 2000 // characters of a description or filler
	usualTimeout     = 8 * time.Second
	longestTimeout   = 20 // seconds
)

// named, dialled and field are the shapes of names, numbers and header names.
var (
	named   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	dialled = regexp.MustCompile(`^\+?[0-9]{3,15}$`)
	field   = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$") // RFC 9110, section 5.6.2
)

// Types of tools.
const (
	EndCall        = "end_call"
	TransferCall   = "transfer_call"
	SendDTMF       = "send_dtmf"
	LeaveVoicemail = "leave_voicemail"
	HTTP           = "http"
)

// A Definition is a tool as an agent has it. Name, Parameters and what follows
// are of HTTP functions alone.
type Definition struct {
	Type         string        `json:"type"                   yaml:"type"`
	Description  string        `json:"description,omitempty"  yaml:"description"` // in place of the usual one
	Destinations []Destination `json:"destinations,omitempty" yaml:"destinations"`

	Name       string                  `json:"name,omitempty"       yaml:"name"`
	Parameters json.RawMessage         `json:"parameters,omitempty" yaml:"-"`
	URL        string                  `json:"url,omitempty"        yaml:"url"`
	Method     string                  `json:"method,omitempty"     yaml:"method"` // POST where none is given
	Headers    map[string]media.Secret `json:"-"                    yaml:"headers"`
	TimeoutS   float64                 `json:"timeout_s,omitempty"  yaml:"timeout_s"` // 1 to 20; 8 where none is given
	Filler     string                  `json:"filler,omitempty"     yaml:"filler"`
}

// A Destination is whom a call may be handed over to.
type Destination struct {
	Label  string `json:"label,omitempty" yaml:"label"` // what the model calls it; empty: the number
	Number string `json:"number"          yaml:"number"`
}

func (d Destination) name() string { return cmp.Or(d.Label, d.Number) }

// Check returns what is wrong with the tools of an agent.
func Check(all []Definition, rules egress.Rules) error {
	_, err := Build(all, rules, nil)
	return err
}

// Build makes the functions of definitions. client asks for HTTP functions.
func Build(all []Definition, rules egress.Rules, client *http.Client) ([]pipeline.Function, error) {
	if len(all) > mostTools {
		return nil, fmt.Errorf("tools: %d of them; at most %d are accepted", len(all), mostTools)
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

func (d Definition) build(rules egress.Rules, client *http.Client) (pipeline.Function, error) {
	if n := len([]rune(d.Description)); n > longestText {
		return nil, fmt.Errorf("description: %d characters; at most %d are accepted", n, longestText)
	}
	if d.Type != HTTP && (d.Name != "" || d.URL != "" || len(d.Parameters) > 0 || len(d.Headers) > 0) {
		return nil, fmt.Errorf("%s: name, url, parameters and headers are of type http alone", d.Type)
	}
	if d.Type != TransferCall && len(d.Destinations) > 0 {
		return nil, fmt.Errorf("%s: destinations are of type transfer_call alone", d.Type)
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

func (d Definition) http(rules egress.Rules, client *http.Client) (pipeline.Function, error) {
	method := cmp.Or(d.Method, http.MethodPost)
	switch {
	case !named.MatchString(d.Name):
		return nil, fmt.Errorf("name %q: use 1 to 64 letters, digits, - and _", d.Name)
	case d.Description == "":
		return nil, fmt.Errorf("%s: description is missing: it tells the model what the function is for", d.Name)
	case !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, method):
		return nil, fmt.Errorf("%s: method %q: use GET, POST, PUT, PATCH or DELETE", d.Name, method)
	case d.TimeoutS != 0 && !(d.TimeoutS >= 1 && d.TimeoutS <= longestTimeout):
		return nil, fmt.Errorf("%s: timeout_s is %v: use 1 to %d", d.Name, d.TimeoutS, longestTimeout)
	case len([]rune(d.Filler)) > longestText:
		return nil, fmt.Errorf("%s: filler: at most %d characters are accepted", d.Name, longestText)
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
	timeout := usualTimeout
	if d.TimeoutS != 0 {
		timeout = time.Duration(d.TimeoutS * float64(time.Second))
	}
	return &request{
		spec: pipeline.Tool{Name: d.Name, Description: d.Description, Parameters: parameters},
		url:  u, method: method, headers: d.Headers, timeout: timeout, filler: d.Filler, client: client,
	}, nil
}

// checkParameters tells what is wrong with a schema of arguments that go beside
// query.
func checkParameters(parameters json.RawMessage, query url.Values) error {
	if _, err := jsonschema.Parse(parameters); err != nil {
		return err
	}
	var top struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(parameters, &top) != nil || top.Type != "object" {
		return errors.New("the type of the whole is object")
	}
	for _, name := range slices.Sorted(maps.Keys(top.Properties)) {
		if fixed(query, name) {
			return fmt.Errorf("%q stands in the url: the model may not say otherwise", name)
		}
	}
	return nil
}

// checkURL reads an address that may be asked. Whether its host leads outward is
// checked at each connection, after the name is resolved.
func checkURL(text string, rules egress.Rules) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return nil, errors.New("use an address like https://host/path")
	case u.User != nil:
		return nil, errors.New("it holds a user or password: use headers")
	case u.Scheme != "https" && (u.Scheme != "http" || !rules.Anywhere && !rules.Allows(u.Hostname(), cmp.Or(u.Port(), "80"))):
		return nil, errors.New("use https:// (http is for hosts that the operator allows)")
	}
	return u, nil
}

func checkHeaders(headers map[string]media.Secret) error {
	for name, value := range headers {
		if !field.MatchString(name) {
			return fmt.Errorf("headers: %q is no name of a header", name)
		}
		if strings.ContainsFunc(string(value), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return fmt.Errorf("headers: %s: a control character", name)
		}
		if slices.Contains([]string{"Host", "Content-Length", "Transfer-Encoding", "Connection"}, http.CanonicalHeaderKey(name)) {
			return fmt.Errorf("headers: %s is not yours to set", name)
		}
	}
	return nil
}
