package docs

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"
)

//go:embed assets
var assets embed.FS

// A site is the set of pages, with links for a server or for static files.
type site struct {
	source   fs.FS
	static   bool
	version  string // shown on each page; empty for none
	pages    []*page
	bySource map[string]*page
	others   map[string]string // addresses of images and other files, by path in the repository
	home     *page
	groups   []group
	dead     []string
}

// A group is a part of the navigation.
type group struct {
	Title string
	Items []entry
}

type entry struct {
	Title string
	page  *page
}

// load reads and renders all pages.
func load(source fs.FS, static bool) (*site, error) {
	s := &site{source: source, static: static, bySource: map[string]*page{}, others: map[string]string{}}
	md := markdown()
	err := fs.WalkDir(source, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if path.Ext(name) != ".md" {
			s.others[name] = "guide/" + strings.TrimPrefix(name, "docs/")
			return nil
		}
		p, err := parse(md, source, name)
		if err == nil {
			s.pages, s.bySource[name] = append(s.pages, p), p
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	if s.home = s.bySource[home]; s.home == nil {
		return nil, fmt.Errorf("docs: %s is missing", home)
	}
	s.navigation()
	for _, p := range s.pages {
		s.link(p)
	}
	for _, p := range s.pages {
		if err := p.renderBody(md); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// address returns the path of a page below the root of all pages.
func (s *site) address(p *page) string {
	switch {
	case !s.static:
		return p.at
	case p == s.home:
		return "index.html"
	default:
		return p.at + ".html"
	}
}

// root returns the address of the root of all pages, seen from a page.
func (s *site) root(from *page) string {
	if !s.static {
		return "/docs/"
	}
	return strings.Repeat("../", strings.Count(s.address(from), "/"))
}

func (s *site) href(from *page, address string) string { return s.root(from) + address }

// files returns all pages, images and assets, by address.
func (s *site) files() (map[string]file, error) {
	bodies := map[string][]byte{}
	for from, to := range s.others {
		b, err := fs.ReadFile(s.source, from)
		if err != nil {
			return nil, fmt.Errorf("docs: %w", err)
		}
		bodies[to] = b
	}
	for _, name := range []string{"style.css", "docs.js", "icon.svg"} {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return nil, fmt.Errorf("docs: %w", err)
		}
		bodies["guide/assets/"+name] = b
	}
	index, err := s.index()
	if err != nil {
		return nil, err
	}
	bodies["guide/assets/index.js"] = index
	layout, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	order := s.reading()
	for i, p := range order {
		var b bytes.Buffer
		if err = layout.Execute(&b, s.view(order, i)); err != nil {
			return nil, fmt.Errorf("docs: %w", err)
		}
		bodies[s.address(p)] = b.Bytes()
	}
	files := map[string]file{}
	for name, b := range bodies {
		if files[name], err = newFile(name, b); err != nil {
			return nil, fmt.Errorf("docs: %w", err)
		}
	}
	return files, nil
}

// reading returns all pages in the order of the navigation. The decisions follow their list, by number.
func (s *site) reading() []*page {
	all, seen := []*page{s.home}, map[*page]bool{s.home: true}
	add := func(p *page) {
		if !seen[p] {
			seen[p] = true
			all = append(all, p)
		}
	}
	for _, g := range s.groups {
		for _, e := range g.Items {
			add(e.page)
			if e.page.source != decisions+"/README.md" {
				continue
			}
			for _, p := range s.pages { // by file name
				if path.Dir(p.source) == decisions {
					add(p)
				}
			}
		}
	}
	for _, p := range s.pages {
		add(p)
	}
	return all
}

// viewLink is a link of the page around the text.
type viewLink struct {
	Title, Href string
	Current     bool
}

type viewGroup struct {
	Title string
	Links []viewLink
}

type view struct {
	Page           *page
	Root, Home     string
	Version        string
	Groups         []viewGroup
	Contents       []section // second-level headings
	Previous, Next *viewLink
	Explorer       bool // the server has the API explorer
}

func (s *site) view(order []*page, at int) view {
	p := order[at]
	v := view{Page: p, Root: s.root(p), Home: s.href(p, s.address(s.home)), Version: s.version, Explorer: !s.static}
	for _, g := range s.groups {
		shown := viewGroup{Title: g.Title}
		for _, e := range g.Items {
			shown.Links = append(shown.Links, viewLink{e.Title, s.href(p, s.address(e.page)), e.page == p})
		}
		v.Groups = append(v.Groups, shown)
	}
	for _, h := range p.Sections {
		if h.Level == 2 {
			v.Contents = append(v.Contents, h)
		}
	}
	if at > 0 {
		v.Previous = &viewLink{Title: order[at-1].Title, Href: s.href(p, s.address(order[at-1]))}
	}
	if at+1 < len(order) {
		v.Next = &viewLink{Title: order[at+1].Title, Href: s.href(p, s.address(order[at+1]))}
	}
	return v
}

// found is a row of the search index: a section, its page and its text.
type found struct {
	Page    string `json:"p"`
	Heading string `json:"h,omitempty"`
	Address string `json:"a"`
	Text    string `json:"t"`
}

// index returns a script with the text of all sections.
func (s *site) index() ([]byte, error) {
	var rows []found
	for _, p := range s.reading() {
		for _, h := range p.Sections {
			row := found{Page: p.Title, Address: s.address(p), Text: strings.TrimSpace(h.text)}
			if h.Anchor != "" {
				row.Heading, row.Address = h.Title, row.Address+"#"+h.Anchor
			}
			rows = append(rows, row)
		}
	}
	b, err := json.Marshal(rows)
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	return append(append([]byte("window.docsIndex = "), b...), ";\n"...), nil
}
