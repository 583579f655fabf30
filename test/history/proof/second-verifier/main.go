// A verifier of bundles that was written from docs/proof.md alone. It shares no code with Annals and uses nothing but
// Go's own library.
//
// Arguments: the bundle, the verifier key, an older checkpoint or "". It prints a line for each position with what it
// found, then the root that the leaves have, and whether the checkpoints agree with it.
package main

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
)

type line struct {
	Format     string
	Checkpoint string
	ReceiptAt  int64
	Receipt    json.RawMessage
	Position   int64
	Commitment string
	Version    *int
	Related    *int
	Paths      *int
	Fields     []json.RawMessage
	Cover      []string
	Leaf       string
	None       bool
	Positions  []int64
	Hashes     string
	Tile       *int64
	End        *int64
}

func main() {
	log.SetFlags(0)
	file, err := os.Open(os.Args[1])
	check(err)
	name, key := verifierKey(os.Args[2])
	oldSize, oldRoot := int64(-1), []byte(nil)
	if os.Args[3] != "" {
		text, err := os.ReadFile(os.Args[3])
		check(err)
		_, oldSize, oldRoot = open(string(text), name, key)
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	reader := bufio.NewReaderSize(file, 1<<20)
	receipts := map[int64]string{}
	var checkpoint string
	var next int64 = 1
	var tree [][]byte
	add := func(position int64, hash []byte) {
		if position != next {
			log.Fatalf("position %d is missing", next)
		}
		next++
		for n := position - 1; n%2 == 1; n /= 2 {
			hash = node(tree[len(tree)-1], hash)
			tree = tree[:len(tree)-1]
		}
		tree = append(tree, hash)
		if position == oldSize {
			fmt.Fprintln(out, "old", bytes.Equal(root(tree), oldRoot))
		}
	}
	for {
		text, err := reader.ReadBytes('\n')
		if err != nil {
			log.Fatal("the bundle has no end")
		}
		var one line
		check(json.Unmarshal(text, &one))
		switch {
		case one.Format != "":
			checkpoint = one.Checkpoint
		case one.ReceiptAt > 0:
			var body string
			check(json.Unmarshal(one.Receipt, &body))
			receipts[one.ReceiptAt] = body
		case one.Fields != nil:
			commitment := decode(one.Commitment)
			fmt.Fprintln(out, one.Position, verdict(one, commitment))
			add(one.Position, leaf("annals-leaf-v1\n%d\n%s\n", one.Position, one.Commitment))
		case one.Commitment != "":
			fmt.Fprintln(out, one.Position, "gone")
			add(one.Position, leaf("annals-leaf-v1\n%d\n%s\n", one.Position, one.Commitment))
		case one.Leaf != "":
			hash := leaf("annals-receipt-v1\n%d\n%s\n", one.Position, receipts[one.Position])
			fmt.Fprintln(out, one.Position, "receipt", bytes.Equal(hash, decode(one.Leaf)))
			add(one.Position, decode(one.Leaf))
		case one.None:
			fmt.Fprintln(out, one.Position, "none")
			hash := sha256.Sum256(append([]byte{0}, fmt.Sprintf("annals-none-v1\n%d\n", one.Position)...))
			add(one.Position, hash[:])
		case one.Positions != nil:
			hashes := decode(one.Hashes)
			for position := one.Positions[0]; position <= one.Positions[1]; position++ {
				add(position, hashes[:32])
				hashes = hashes[32:]
			}
			fmt.Fprintln(out, one.Positions[0], one.Positions[1], "not shown")
		case one.End != nil:
			_, size, signed := open(checkpoint, name, key)
			right := size == next-1 && *one.End == size && bytes.Equal(signed, root(tree))
			fmt.Fprintln(out, "tree", size, right)
			return
		}
	}
}

// verdict says whether the fields lead to the commitment, and which of them are hidden.
func verdict(one line, commitment []byte) string {
	head := []string{"identity", "context", "time", "type", "entity", "entityId", "name", "schemaVersion", "actor", "recordedBy", "marks"}
	version := 1
	if one.Version != nil {
		version = 2
		if *one.Version != version {
			log.Fatal("the version of a commitment is unknown")
		}
		head = append(head, "actorId", "onBehalfOfName", "onBehalfOfId", "correlationId")
	}
	count := len(head) + 2**one.Related + 3**one.Paths
	if len(one.Fields) != count {
		return "changed"
	}
	labels := head
	for i := 0; i < *one.Related; i++ {
		labels = append(labels, "relatedEntity", "relatedEntityId")
	}
	for i := 0; i < *one.Paths; i++ {
		labels = append(labels, "path", "before", "after")
	}
	shown := make([]bool, count)
	hashes := make([][]byte, count)
	var hidden []string
	for i, field := range one.Fields {
		var hiddenField struct{ Hash string }
		shown[i] = field[0] != '{'
		if !shown[i] {
			check(json.Unmarshal(field, &hiddenField))
			hashes[i] = decode(hiddenField.Hash)
			hidden = append(hidden, labels[i])
		}
	}
	salts, ok := saltsOf(one.Cover, shown)
	if !ok {
		return "changed"
	}
	for i, field := range one.Fields {
		if !shown[i] {
			continue
		}
		message := labels[i] + "\n"
		if string(field) != "null" {
			var text string
			check(json.Unmarshal(field, &text))
			message = labels[i] + "=" + text
		}
		mac := hmac.New(sha256.New, salts[i])
		mac.Write([]byte(message))
		hashes[i] = mac.Sum(nil)
	}
	whole := sha256.New()
	fmt.Fprintf(whole, "annals-commitment-v%d\n", version)
	check(binary.Write(whole, binary.BigEndian, uint32(*one.Related)))
	check(binary.Write(whole, binary.BigEndian, uint32(*one.Paths)))
	for _, hash := range hashes {
		whole.Write(hash)
	}
	if !bytes.Equal(whole.Sum(nil), commitment) {
		return "changed"
	}
	return "right " + strings.Join(hidden, ",")
}

// saltsOf grows the salts of the shown fields from the cover.
func saltsOf(cover []string, shown []bool) ([][]byte, bool) {
	depth := 0
	for 1<<depth < len(shown) {
		depth++
	}
	salts := make([][]byte, len(shown))
	var grow func(seed []byte, first, height int)
	grow = func(seed []byte, first, height int) {
		if first >= len(shown) {
			return
		}
		if height == 0 {
			salts[first] = seed
			return
		}
		for side := 0; side < 2; side++ {
			child := sha256.Sum256(append([]byte{byte(side)}, seed...))
			grow(child[:], first+side<<(height-1), height-1)
		}
	}
	all := func(first, height int) bool {
		for i := first; i < first+1<<height && i < len(shown); i++ {
			if !shown[i] {
				return false
			}
		}
		return true
	}
	var walk func(first, height int) bool
	walk = func(first, height int) bool {
		if first >= len(shown) {
			return true
		}
		if height < depth && all(first, height) {
			if len(cover) == 0 {
				return false
			}
			grow(decode(cover[0]), first, height)
			cover = cover[1:]
			return true
		}
		return height == 0 || walk(first, height-1) && walk(first+1<<(height-1), height-1)
	}
	return salts, walk(0, depth) && len(cover) == 0
}

func verifierKey(text string) (string, ed25519.PublicKey) {
	parts := strings.SplitN(text, "+", 3)
	key := decode(parts[2])
	id := sha256.Sum256(append([]byte(parts[0]+"\n"), key...))
	if key[0] != 1 || fmt.Sprintf("%08x", binary.BigEndian.Uint32(id[:])) != parts[1] {
		log.Fatal("the key is not one of Ed25519")
	}
	return parts[0], ed25519.PublicKey(key[1:])
}

func open(note, name string, key ed25519.PublicKey) (string, int64, []byte) {
	end := strings.Index(note, "\n\n")
	text := note[:end+1]
	for _, line := range strings.Split(note[end+2:], "\n") {
		if words := strings.Split(line, " "); len(words) == 3 && words[1] == name && ed25519.Verify(key, []byte(text), decode(words[2])[4:]) {
			lines := strings.Split(text, "\n")
			size, err := strconv.ParseInt(lines[1], 10, 64)
			check(err)
			return lines[0], size, decode(lines[2])
		}
	}
	log.Fatal("the checkpoint is not signed by the key")
	return "", 0, nil
}

func leaf(format string, position int64, text string) []byte {
	hash := sha256.Sum256(append([]byte{0}, fmt.Sprintf(format, position, text)...))
	return hash[:]
}

func node(left, right []byte) []byte {
	hash := sha256.Sum256(append(append([]byte{1}, left...), right...))
	return hash[:]
}

func root(tree [][]byte) []byte {
	if len(tree) == 0 {
		hash := sha256.Sum256(nil)
		return hash[:]
	}
	hash := tree[len(tree)-1]
	for i := len(tree) - 2; i >= 0; i-- {
		hash = node(tree[i], hash)
	}
	return hash
}

func decode(text string) []byte {
	data, err := base64.StdEncoding.DecodeString(text)
	check(err)
	return data
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
