package docs

import (
	"bytes"
	"fmt"
	"html/template"
	"image/png"
	"io/fs"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

const (
	home      = "docs/guide/README.md" // its lists are the navigation
	decisions = "docs/adr"
)

// A page is one Markdown file.
type page struct {
	source   string // path in the repository
	at       string // path below /docs
	text     []byte
	node     ast.Node
	Title    string
	Sections []section
	anchors  map[string]bool
	Body     template.HTML
}

// A section is a heading and the text below it.
type section struct {
	Level       int
	Anchor      string // empty for the heading of the page
	Title, text string
}

// place returns the path below /docs of a file of the repository.
func place(source string) string {
	name := strings.TrimSuffix(source, ".md")
	switch dir, base := path.Split(name); {
	case source == home:
		return "guide"
	case source == "CHANGELOG.md":
		return "changelog"
	case dir == "":
		return "guide/" + strings.ToLower(base)
	case dir == "docs/guide/":
		return "guide/" + base
	case base == "README":
		return "guide/" + path.Base(dir)
	case dir == "docs/":
		return "guide/reference/" + base
	default:
		return "guide/" + strings.TrimPrefix(name, "docs/")
	}
}

// markdown returns the parser and renderer. It renders neither raw HTML nor links to scripts.
func markdown() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
}

// parse reads a page. Headings get the same anchors as on GitHub.
func parse(md goldmark.Markdown, files fs.FS, source string) (*page, error) {
	b, err := fs.ReadFile(files, source)
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	p := &page{source: source, at: place(source), text: b, anchors: anchors{}}
	p.node = md.Parser().Parse(text.NewReader(b), parser.WithContext(parser.NewContext(parser.WithIDs(anchors(p.anchors)))))
	for n := p.node.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			if last := len(p.Sections) - 1; last >= 0 {
				p.Sections[last].text += plain(n, b) + " "
			}
			continue
		}
		id, _ := h.AttributeString("id")
		anchor, _ := id.([]byte)
		s := section{Level: h.Level, Anchor: string(anchor), Title: strings.TrimSpace(plain(h, b))}
		if p.Title == "" {
			p.Title, s.Anchor = s.Title, ""
		}
		p.Sections = append(p.Sections, s)
	}
	if p.Title == "" {
		return nil, fmt.Errorf("docs: %s has no heading", source)
	}
	return p, nil
}

// anchors implements parser.IDs by the rules of GitHub.
type anchors map[string]bool

// Generate implements parser.IDs.
func (a anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	base := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		default:
			return -1
		}
	}, strings.TrimSpace(string(heading)))
	id := base
	for n := 1; a[id]; n++ {
		id = fmt.Sprintf("%s-%d", base, n)
	}
	a[id] = true
	return []byte(id)
}

// Put implements parser.IDs.
func (a anchors) Put(id []byte) { a[string(id)] = true }

// plain returns the text of a node. Blocks and cells are separated by spaces.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		switch t := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(t.Segment.Value(source))
				if t.SoftLineBreak() || t.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.AutoLink:
			if entering {
				b.Write(t.Label(source))
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		default:
			if !entering && (n.Type() == ast.TypeBlock || n.Kind() == extast.KindTableCell) {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// link rewrites the links of a page to files of the repository, and records those that lead
// nowhere.
func (s *site) link(p *page) {
	_ = ast.Walk(p.node, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			n.Destination = s.resolve(p, n.Destination)
		case *ast.Image:
			s.reserve(p, n)
			n.Destination = s.resolve(p, n.Destination)
		}
		return ast.WalkContinue, nil
	})
}

// reserve lets an image load when it comes into view. Its size reserves the space, so that the text below does not move.
func (s *site) reserve(p *page, n *ast.Image) {
	n.SetAttributeString("loading", []byte("lazy"))
	source := path.Join(path.Dir(p.source), string(n.Destination))
	b, err := fs.ReadFile(s.source, source)
	if err != nil {
		return // resolve records the dead link
	}
	size, err := png.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		s.dead = append(s.dead, fmt.Sprintf("%s shows %s: accepted are PNG files: %v", p.source, source, err))
		return
	}
	n.SetAttributeString("width", []byte(strconv.Itoa(size.Width)))
	n.SetAttributeString("height", []byte(strconv.Itoa(size.Height)))
}

// resolve returns the address of what a link of a page leads to.
func (s *site) resolve(p *page, to []byte) []byte {
	u, err := url.Parse(string(to))
	switch {
	case err == nil && (u.Scheme == "https" || u.Scheme == "http"):
		return to
	case err != nil || u.Scheme != "" || u.Host != "" || strings.HasPrefix(u.Path, "/"):
		s.dead = append(s.dead, fmt.Sprintf("%s links to %s: only files of the repository and web addresses are accepted", p.source, to))
		return to
	}
	if u.Path == "" && p.anchors[u.Fragment] {
		return to
	}
	source := path.Join(path.Dir(p.source), u.Path)
	address, fragment := s.others[source], u.Fragment
	if target := s.bySource[source]; target != nil {
		address = s.address(target)
		if target.anchors[fragment] {
			address, fragment = address+"#"+fragment, ""
		}
	}
	if address == "" || fragment != "" {
		s.dead = append(s.dead, fmt.Sprintf("%s links to %s, which does not exist", p.source, to))
		return to
	}
	return []byte(s.href(p, address))
}

// navigation reads the groups and links of the lists of the home page.
func (s *site) navigation() {
	for n := s.home.node.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Level == 2 {
			s.groups = append(s.groups, group{Title: plain(h, s.home.text)})
		}
		if n.Kind() != ast.KindList || len(s.groups) == 0 {
			continue
		}
		to := &s.groups[len(s.groups)-1]
		for item := n.FirstChild(); item != nil; item = item.NextSibling() {
			if block := item.FirstChild(); block != nil {
				if l, ok := block.FirstChild().(*ast.Link); ok {
					if p := s.bySource[path.Join(path.Dir(home), string(l.Destination))]; p != nil {
						to.Items = append(to.Items, entry{plain(l, s.home.text), p})
					}
				}
			}
		}
	}
}

// renderBody renders a page whose links are rewritten.
func (p *page) renderBody(md goldmark.Markdown) error {
	var b bytes.Buffer
	if err := md.Renderer().Render(&b, p.text, p.node); err != nil {
		return fmt.Errorf("docs: %s: %w", p.source, err)
	}
	p.Body = template.HTML(b.String()) //nolint:gosec // the renderer escapes text and leaves raw HTML out
	return nil
}
