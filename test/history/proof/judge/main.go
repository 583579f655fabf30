// Reads a log with Go's sumdb/note and sumdb/tlog, which know nothing of Annals, and prints the findings.
//
// Arguments: the address of the log, an access token, the verifier key, a file with an older checkpoint.
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Of tlog-tiles: 256 hashes.
const height = 8

type logReader struct {
	url, token string
	read       map[string][]byte
}

func main() {
	log.SetFlags(0)
	reader := logReader{os.Args[1], os.Args[2], map[string][]byte{}}
	verifier, err := note.NewVerifier(os.Args[3])
	check(err)
	text, err := os.ReadFile(os.Args[4])
	check(err)
	old := open(text, verifier)
	tree := open(reader.get("/checkpoint"), verifier)
	hashes := tlog.TileHashReader(tree, reader)

	consistency, err := tlog.ProveTree(tree.N, old.N, hashes)
	check(err)
	check(tlog.CheckTree(consistency, tree.N, tree.Hash, old.N, old.Hash))

	// A sample of a large tree: Go reads the tiles again for each proof.
	step := 1 + tree.N/600
	leaves := reader.leaves(tree.N)
	for index, leaf := range leaves {
		if int64(index)%step != 0 {
			continue
		}
		proof, err := tlog.ProveRecord(tree.N, int64(index), hashes)
		check(err)
		check(tlog.CheckRecord(proof, tree.N, tree.Hash, int64(index), tlog.RecordHash(leaf)))
	}
	for _, index := range []int64{0, 17, 150} {
		reader.proof(index, leaves[index], tree)
	}
	fmt.Printf("%d of %d leaves\n", len(leaves), tree.N)
}

// The proof of one change, in the format of tlog-proof. The checkpoint may be newer.
func (reader logReader) proof(index int64, leaf []byte, tree tlog.Tree) {
	head, checkpoint, _ := strings.Cut(string(reader.get(fmt.Sprintf("/proof?position=%d", index+1))), "\n\n")
	lines := strings.Split(head, "\n")
	if lines[0] != "c2sp.org/tlog-proof@v1" || lines[2] != fmt.Sprintf("index %d", index) {
		log.Fatalf("no proof of the leaf %d", index)
	}
	if !strings.Contains(checkpoint, fmt.Sprintf("\n%d\n%s\n", tree.N, tree.Hash)) {
		log.Fatal("the proof has another checkpoint")
	}
	var proof tlog.RecordProof
	for _, line := range lines[3:] {
		hash, err := tlog.ParseHash(line)
		check(err)
		proof = append(proof, hash)
	}
	check(tlog.CheckRecord(proof, tree.N, tree.Hash, index, tlog.RecordHash(leaf)))
}

// A checkpoint is a note that begins with the name of its log, where Go's own begin with a name of their own.
func open(text []byte, verifier note.Verifier) tlog.Tree {
	opened, err := note.Open(text, note.VerifierList(verifier))
	check(err)
	name, rest, _ := strings.Cut(opened.Text, "\n")
	if name != verifier.Name() {
		log.Fatalf("the checkpoint is of %s", name)
	}
	tree, err := tlog.ParseTree([]byte("go.sum database tree\n" + rest))
	check(err)
	return tree
}

func (reader logReader) leaves(size int64) [][]byte {
	var leaves [][]byte
	for first := int64(0); first < size; first += 1 << height {
		width := int(min(size-first, 1<<height))
		bundle := reader.get("/tile/entries/" + name(tlog.Tile{H: height, L: 0, N: first >> height, W: width}))
		for len(bundle) > 0 {
			end := 2 + int(binary.BigEndian.Uint16(bundle))
			leaves = append(leaves, bundle[2:end])
			bundle = bundle[end:]
		}
	}
	return leaves
}

func (reader logReader) Height() int { return height }

func (reader logReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var read [][]byte
	for _, tile := range tiles {
		read = append(read, reader.get(fmt.Sprintf("/tile/%d/%s", tile.L, name(tile))))
	}
	return read, nil
}

func (reader logReader) SaveTiles([]tlog.Tile, [][]byte) {}

// The path of a tile in Go begins with its height and its level.
func name(tile tlog.Tile) string {
	return strings.TrimPrefix(tile.Path(), fmt.Sprintf("tile/%d/%d/", tile.H, tile.L))
}

func (reader logReader) get(path string) []byte {
	if known, isRead := reader.read[path]; isRead {
		return known
	}
	request, err := http.NewRequest("GET", reader.url+path, nil)
	check(err)
	request.Header.Set("Authorization", "Bearer "+reader.token)
	response, err := http.DefaultClient.Do(request)
	check(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check(err)
	if response.StatusCode != 200 {
		log.Fatalf("%s: %d %s", path, response.StatusCode, body)
	}
	reader.read[path] = body
	return body
}

func min(one, other int64) int64 {
	if one < other {
		return one
	}
	return other
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
