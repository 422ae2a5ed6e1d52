// SPDX-License-Identifier: Apache-2.0

package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// obvious are methods whose meaning an interface of the standard library gives.
var obvious = []string{"Error", "String", "Unwrap"}

// Every exported definition has a comment: what it returns, units where names do not say, errors. Methods of unexported
// types implement interfaces, which have theirs.
func TestExportedDefinitionsAreDocumented(t *testing.T) {
	files := token.NewFileSet()
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".gen.go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, name := range undocumented(file) {
			t.Errorf("%s: %s has no comment", files.Position(name.Pos()), name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// README.md is the map: it names every package, and nothing that is not there.
func TestTheMapNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, match := range regexp.MustCompile(`internal/(\w+)`).FindAllSubmatch(text, -1) {
		named[string(match[1])] = true
	}
	packages, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		if !named[p.Name()] {
			t.Errorf("internal/%s is not in README.md", p.Name())
		}
		delete(named, p.Name())
	}
	for name := range named {
		t.Errorf("README.md names internal/%s, which does not exist", name)
	}
}

func undocumented(file *ast.File) (names []*ast.Ident) {
	lacks := func(name *ast.Ident, comments ...*ast.CommentGroup) {
		if name.IsExported() && !slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c != nil }) {
			names = append(names, name)
		}
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || (receiver(d).IsExported() && !slices.Contains(obvious, d.Name.Name)) {
				lacks(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					lacks(s.Name, d.Doc, s.Doc)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						lacks(name, d.Doc, s.Doc, s.Comment)
					}
				}
			}
		}
	}
	return names
}

// receiver is the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) (name *ast.Ident) {
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if found, ok := n.(*ast.Ident); ok && name == nil {
			name = found
		}
		return name == nil
	})
	return name
}
