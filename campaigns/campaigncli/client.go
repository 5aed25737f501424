package campaigncli

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// A Client calls the API of a running server.
type Client struct {
	Terminal

	URL  string
	Key  func() string // API key; a function, so that it is not printed
	HTTP *http.Client  // nil means a client with a timeout of five minutes
}

// timeout is the longest time for an import.
const timeout = 5 * time.Minute

// errTable returns a table on standard error, apart from output for scripts.
func (c *Client) errTable() *tabwriter.Writer { return tabwriter.NewWriter(c.Errs, 0, 4, 2, ' ', 0) }

// do sends a request and returns an error for a status of 300 or higher.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader, header http.Header) (*http.Response, error) {
	key := c.Key()
	if key == "" {
		return nil, errors.New("no API key: set PARLEY_API_KEY or PARLEY_API_KEY_FILE; create one with parley key create")
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+path, body)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	req.Header.Set("Authorization", "Bearer "+key)
	client := c.HTTP
	if client == nil {
		client = &http.Client{Timeout: timeout}
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, c.explain(err)
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, responseError(resp)
}

// explain says what to do if no connection to the server is possible.
func (c *Client) explain(err error) error {
	_, dialed := errors.AsType[*net.OpError](err)
	_, refused := errors.AsType[*tls.CertificateVerificationError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	if sent, ok := errors.AsType[*url.Error](err); ok && (dialed || refused || noTLS) {
		return fmt.Errorf("no connection to %s: %w; start parley serve there, or set PARLEY_API_URL to the server's address", c.URL, sent.Err)
	}
	return err
}

// responseError returns the error of a response.
func responseError(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // if reading fails, the error shows what was read
	var e struct {
		Error struct {
			Code    string          `json:"code"`
			Message json.RawMessage `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(text, &e) != nil || e.Error.Code == "" {
		return fmt.Errorf("the server returned %s", resp.Status)
	}
	var message string
	var issues []struct {
		Loc []any  `json:"loc"`
		Msg string `json:"msg"`
	}
	if json.Unmarshal(e.Error.Message, &message) != nil && json.Unmarshal(e.Error.Message, &issues) == nil {
		var all []string
		for _, i := range issues {
			at := []string{}
			for _, l := range i.Loc {
				at = append(at, fmt.Sprint(l))
			}
			all = append(all, strings.Join(at, ".")+": "+i.Msg)
		}
		message = strings.Join(all, "; ")
	}
	if wait := resp.Header.Get("Retry-After"); wait != "" {
		message += "; Retry-After is " + wait + " s"
	}
	return fmt.Errorf("refused, %s (%d): %s", e.Error.Code, resp.StatusCode, message)
}

// upload creates a campaign with a file. It returns the response and whether it is the
// stored response of an earlier request.
func (c *Client) upload(ctx context.Context, spec []byte, file *os.File, key string) (body []byte, replayed bool, err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, false, err
	}
	// The parts around the file are small. They are built first, because the total length must be
	// sent.
	var head bytes.Buffer
	form := multipart.NewWriter(&head)
	err = form.WriteField("campaign", string(spec))
	if err == nil {
		_, err = form.CreateFormFile("rows", filepath.Base(file.Name()))
	}
	if err != nil {
		return nil, false, err
	}
	before := head.Len()
	if err = form.Close(); err != nil {
		return nil, false, err
	}
	sent := &progressReader{r: file, draw: c.Bar("KiB"), all: int(info.Size()+1023) >> 10}
	sent.onEnd = func() { fmt.Fprintln(c.Errs, "sent; the server is reading the rows …") }
	parts := io.MultiReader(bytes.NewReader(head.Bytes()[:before]), sent, bytes.NewReader(head.Bytes()[before:]))
	resp, err := c.do(ctx, http.MethodPost, "/v1/campaigns", parts, http.Header{
		"Idempotency-Key": {key}, "Content-Type": {form.FormDataContentType()},
	})
	if err != nil {
		return nil, false, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return body, resp.Header.Get("Idempotent-Replayed") == "true", err
}

// A progressReader reports how much was read.
type progressReader struct {
	r         io.Reader
	draw      func(done, all int)
	onEnd     func() // called once
	sent, all int
}

// Read implements io.Reader.
func (m *progressReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	before := m.sent >> 10
	if m.sent += n; m.sent>>10 != before {
		m.draw(min(m.sent>>10, m.all), m.all)
	}
	if errors.Is(err, io.EOF) && m.onEnd != nil {
		m.draw(m.all, m.all)
		m.onEnd()
		m.onEnd = nil
	}
	return n, err
}
