// Package main runs the steps of the conformance test: a line of JSON on standard input names a method, the line on
// standard output has its result. Arguments: base URL, API key.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	parley "github.com/parley-voice/parley/api/sdk/go"
)

type step struct {
	Op   string `json:"op"` // operation of the API, or "verify-webhook"
	List bool   `json:"list"`
	ID   string `json:"id"`
	// Query is decoded into the parameters by the names of their fields.
	Query map[string]any  `json:"query"`
	Body  json.RawMessage `json:"body"`
	File  string          `json:"file"`
	Key   string          `json:"key"`

	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Text    string            `json:"text"`
	Now     int64             `json:"now"`
}

type outcome struct {
	Result any      `json:"result,omitempty"`
	Error  *failure `json:"error,omitempty"`
}

type failure struct {
	Type       string  `json:"type"`
	Code       string  `json:"code,omitempty"`
	Status     int     `json:"status,omitempty"`
	Loc        []any   `json:"loc,omitempty"`
	RetryAfter float64 `json:"retry_after,omitempty"`
	RequestID  bool    `json:"request_id"`
	Blockers   int     `json:"blockers"`
	Rows       []any   `json:"rows"` // issues of rows, of a batch that was refused
	Text       string  `json:"text"`
}

func main() {
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func serve(baseURL, key string) error {
	client, err := parley.NewClient(baseURL, key)
	if err != nil {
		return err
	}
	lines, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var s step
		if err = json.Unmarshal(lines.Bytes(), &s); err != nil {
			return err
		}
		result, err := run(client, s)
		o := outcome{Result: result}
		if err != nil {
			o = outcome{Error: describe(err)}
		}
		if err = out.Encode(o); err != nil {
			return err
		}
	}
	return lines.Err()
}

func run(client *parley.Client, s step) (any, error) {
	if s.Op == "verify-webhook" {
		h := http.Header{}
		for name, value := range s.Headers {
			h.Set(name, value)
		}
		return parley.VerifyWebhook(s.Secret, h, []byte(s.Text), time.Unix(s.Now, 0))
	}
	typ, number := reflect.TypeOf(client), 0
	for number < typ.NumMethod() && !strings.EqualFold(typ.Method(number).Name, strings.ReplaceAll(s.Op, "-", "")) {
		number++
	}
	if number == typ.NumMethod() {
		return nil, fmt.Errorf("no method for %s", s.Op)
	}
	m := reflect.ValueOf(client).Method(number)
	args := []reflect.Value{reflect.ValueOf(context.Background())}
	for i := 1; i < m.Type().NumIn()-1; i++ {
		arg, err := argument(m.Type().In(i), s)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	if s.Key != "" {
		args = append(args, reflect.ValueOf(parley.WithIdempotencyKey(s.Key)))
	}
	got := m.Call(args)
	if s.List {
		return collect(got[0])
	}
	err, _ := got[1].Interface().(error)
	if text, ok := got[0].Interface().([]byte); ok {
		return string(text), err
	}
	return got[0].Interface(), err
}

// argument returns what a step has for a parameter of a method.
func argument(kind reflect.Type, s step) (reflect.Value, error) {
	arg := reflect.New(kind)
	var err error
	switch {
	case kind.Kind() == reflect.String:
		arg.Elem().SetString(s.ID)
	case kind == reflect.TypeFor[parley.ContactFile]():
		arg.Elem().Set(reflect.ValueOf(parley.ContactFile{Content: strings.NewReader(s.File), Size: int64(len(s.File))}))
	case strings.HasSuffix(kind.Name(), "Params"):
		for name, v := range s.Query {
			f := arg.Elem().FieldByNameFunc(func(n string) bool {
				return strings.EqualFold(n, strings.ReplaceAll(name, "_", ""))
			})
			f.Set(reflect.ValueOf(v).Convert(f.Type()))
		}
	default:
		err = json.Unmarshal(s.Body, arg.Interface())
	}
	return arg.Elem(), err
}

// collect returns the items of an iterator.
func collect(seq reflect.Value) ([]any, error) {
	all := []any{}
	for item, err := range seq.Seq2() {
		if e, failed := err.Interface().(error); failed {
			return nil, e
		}
		all = append(all, item.Interface())
	}
	return all, nil
}

func describe(err error) *failure {
	var e *parley.Error
	switch {
	case errors.As(err, &e):
		f := &failure{
			Type: e.Type, Code: e.Code, Status: e.Status, RetryAfter: e.RetryAfter.Seconds(), RequestID: e.RequestID != "",
			Blockers: len(e.Blockers), Text: err.Error(),
		}
		if len(e.Issues) > 0 {
			f.Loc = e.Issues[0].Loc
		}
		if e.Import != nil {
			for _, i := range e.Import.Issues.Items {
				f.Rows = append(f.Rows, i)
			}
		}
		return f
	case errors.Is(err, parley.ErrWebhook):
		return &failure{Type: "webhook", Text: err.Error()}
	}
	return &failure{Type: "connection", Text: err.Error()}
}
