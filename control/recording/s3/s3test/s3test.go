// Package s3test provides an S3 server with a bucket in memory. It implements the parts of the protocol that recordings
// need: single and multipart uploads, ranges, lists, and deletion. It checks version 4 signatures, including the signatures of
// chunks.
package s3test

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // for ETags
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Credentials that the server accepts.
const (
	ID     = "AKIDEXAMPLE"
	Secret = "canary-s3-secret"
	Bucket = "recordings"
	region = "eu-test-1"
)

// Server is an S3 server with one bucket.
type Server struct {
	*httptest.Server

	mu      sync.Mutex
	objects map[string][]byte
	uploads map[string]map[int][]byte
	ranges  int
	parts   int
	puts    int
	lists   int
	broken  bool
}

// New starts a server that runs until the test ends.
func New(t *testing.T) *Server {
	t.Helper()
	s := &Server{objects: map[string][]byte{}, uploads: map[string]map[int][]byte{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// BucketURL returns the URL of the bucket, in the form of Parley's settings.
func (s *Server) BucketURL(prefix string) string {
	return "s3://" + Bucket + "/" + prefix + "?" + url.Values{"endpoint": {s.URL}, "region": {region}}.Encode()
}

// Object returns the content of a key, and whether the key exists.
func (s *Server) Object(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	return o, ok
}

// Asked returns the numbers of requested ranges and uploaded parts.
func (s *Server) Asked() (ranges, parts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ranges, s.parts
}

// Break makes all requests fail if broken is true, and succeed otherwise.
func (s *Server) Break(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := authentic(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch key, ok := strings.CutPrefix(r.URL.Path, "/"+Bucket+"/"); {
	case s.broken:
		fail(w, http.StatusServiceUnavailable, "SlowDown")
	case err != nil:
		fail(w, http.StatusForbidden, "SignatureDoesNotMatch")
	case ok && key == "" && r.Method == http.MethodGet:
		s.list(w, r)
	case !ok:
		fail(w, http.StatusNotFound, "NoSuchBucket")
	case r.URL.Query().Has("uploads"), r.URL.Query().Has("uploadId"):
		s.multipart(w, r, key, body)
	default:
		s.object(w, r, key, body)
	}
}

// listPage is the number of keys in one response to a list request. It is small, so that tests cover several pages.
const listPage = 3

// list answers ListObjectsV2 requests.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.lists++
	q := r.URL.Query()
	type content struct {
		Key  string `xml:"Key"`
		Size int    `xml:"Size"`
	}
	type result struct {
		XMLName   xml.Name  `xml:"ListBucketResult"`
		Contents  []content `xml:"Contents"`
		Truncated bool      `xml:"IsTruncated"`
		Next      string    `xml:"NextContinuationToken,omitempty"`
	}
	var page result
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(key, q.Get("prefix")) || key <= q.Get("continuation-token") {
			continue
		}
		if len(page.Contents) == listPage {
			page.Truncated, page.Next = true, page.Contents[listPage-1].Key
			break
		}
		page.Contents = append(page.Contents, content{key, len(s.objects[key])})
	}
	text, err := xml.Marshal(page)
	if err != nil {
		fail(w, http.StatusInternalServerError, "InternalError")
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	_, _ = w.Write(text) // the client reports a broken connection
}

// Keys returns the keys that begin with prefix, in order.
func (s *Server) Keys(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.objects)), func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

// Writes returns the numbers of PUT requests of whole objects and of list requests.
func (s *Server) Writes() (puts, lists int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.puts, s.lists
}

func (s *Server) object(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	switch r.Method {
	case http.MethodPut:
		s.puts++
		s.objects[key] = body
		w.Header().Set("ETag", etag(body))
	case http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodGet, http.MethodHead:
		o, ok := s.objects[key]
		if !ok {
			fail(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		if r.Header.Get("Range") != "" {
			s.ranges++
		}
		w.Header().Set("ETag", etag(o))
		w.Header().Set("Content-Type", "audio/wav")
		http.ServeContent(w, r, "", time.Unix(1_790_000_000, 0), bytes.NewReader(o))
	default:
		fail(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

func (s *Server) multipart(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	id := r.URL.Query().Get("uploadId")
	parts, known := s.uploads[id]
	switch {
	case r.Method == http.MethodPost && r.URL.Query().Has("uploads"):
		id = "upload-" + strconv.Itoa(len(s.uploads))
		s.uploads[id] = map[int][]byte{}
		const started = "<InitiateMultipartUploadResult><Bucket>%s</Bucket><Key>%s</Key><UploadId>%s</UploadId></InitiateMultipartUploadResult>"
		fmt.Fprintf(w, started, Bucket, key, id) //nolint:gosec // read by the S3 client of the tests
	case !known:
		fail(w, http.StatusNotFound, "NoSuchUpload")
	case r.Method == http.MethodPut:
		n, err := strconv.Atoi(r.URL.Query().Get("partNumber"))
		if err != nil {
			fail(w, http.StatusBadRequest, "InvalidArgument")
			return
		}
		parts[n] = body
		s.parts++
		w.Header().Set("ETag", etag(body))
	case r.Method == http.MethodPost:
		s.complete(w, key, id, body)
	case r.Method == http.MethodDelete:
		delete(s.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	default:
		fail(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

// complete joins the uploaded parts that body lists.
func (s *Server) complete(w http.ResponseWriter, key, id string, body []byte) {
	var named struct {
		Parts []struct {
			Number int    `xml:"PartNumber"`
			ETag   string `xml:"ETag"`
		} `xml:"Part"`
	}
	if xml.Unmarshal(body, &named) != nil || len(named.Parts) == 0 { //nolint:gosec // numbers and texts
		fail(w, http.StatusBadRequest, "MalformedXML")
		return
	}
	var whole []byte
	for _, p := range named.Parts {
		part, ok := s.uploads[id][p.Number]
		if !ok || strings.Trim(p.ETag, `"`) != strings.Trim(etag(part), `"`) {
			fail(w, http.StatusBadRequest, "InvalidPart")
			return
		}
		whole = append(whole, part...)
	}
	delete(s.uploads, id)
	s.objects[key] = whole
	const completed = "<CompleteMultipartUploadResult><Bucket>%s</Bucket><Key>%s</Key><ETag>%s</ETag></CompleteMultipartUploadResult>"
	fmt.Fprintf(w, completed, Bucket, key, etag(whole)) //nolint:gosec // likewise
}

func etag(b []byte) string {
	sum := md5.Sum(b) //nolint:gosec // likewise
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}

var errForged = errors.New("the signature does not match the key")

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// authentic checks a request's signature (AWS General Reference, "Signature Version 4 signing process") and returns
// the decoded body.
func authentic(r *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return nil, errForged
	}
	given := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		given[k] = v
	}
	stamp, payload := r.Header.Get("X-Amz-Date"), r.Header.Get("X-Amz-Content-Sha256")
	scope := stamp[:min(8, len(stamp))] + "/" + region + "/s3/aws4_request"
	if given["Credential"] != ID+"/"+scope {
		return nil, errForged
	}
	var headers strings.Builder
	for name := range strings.SplitSeq(given["SignedHeaders"], ";") {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.TrimSpace(value))
	}
	canonical := strings.Join([]string{
		r.Method, r.URL.EscapedPath(), canonicalQuery(r.URL.Query()), headers.String(), given["SignedHeaders"], payload,
	}, "\n")
	key := []byte("AWS4" + Secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	want := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+stamp+"\n"+scope+"\n"+sum([]byte(canonical))))
	switch {
	case want != given["Signature"]:
		return nil, errForged
	case strings.HasPrefix(payload, "STREAMING-"):
		return chunks(raw, key, want, "AWS4-HMAC-SHA256-PAYLOAD\n"+stamp+"\n"+scope+"\n", strings.HasPrefix(payload, "STREAMING-AWS4"))
	case payload != "UNSIGNED-PAYLOAD" && payload != sum(raw):
		return nil, errForged
	}
	return raw, nil
}

func canonicalQuery(q url.Values) string {
	var all []string
	for k, vs := range q {
		for _, v := range vs {
			all = append(all, escape(k)+"="+escape(v))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "&")
}

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// chunks decodes a chunked body. The signature of each chunk covers the signature of the previous chunk.
func chunks(raw, key []byte, before, text string, signed bool) ([]byte, error) {
	in := bufio.NewReader(bytes.NewReader(raw))
	var whole []byte
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		hexSize, extension, _ := strings.Cut(strings.TrimSpace(line), ";")
		size, err := strconv.ParseUint(hexSize, 16, 31)
		if err != nil {
			return nil, err
		}
		part := make([]byte, size)
		if _, err := io.ReadFull(in, part); err != nil {
			return nil, err
		}
		if signed {
			want := hex.EncodeToString(mac(key, text+before+"\n"+sum(nil)+"\n"+sum(part)))
			if extension != "chunk-signature="+want {
				return nil, errForged
			}
			before = want
		}
		if size == 0 {
			return whole, nil // trailers are ignored
		}
		whole = append(whole, part...)
		if _, err := in.Discard(2); err != nil {
			return nil, err
		}
	}
}
