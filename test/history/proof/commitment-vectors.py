# The commitment to an entry as docs/proof.md says it, without a line of Annals. It reads JSON from standard input, a
# list of {"seed", "entry", "position", "hidden"}, and writes the vectors of that page.
import base64, hashlib, hmac, json, struct, sys

HEAD = ["identity", "context", "time", "type", "entity", "entityId", "name", "schemaVersion", "actor", "recordedBy", "marks"]
WHO = ["actorId", "onBehalfOfName", "onBehalfOfId", "correlationId"]


def sha256(data):
    return hashlib.sha256(data).digest()


def node(seed, depth, index):
    for level in reversed(range(depth)):
        seed = sha256(bytes([index >> level & 1]) + seed)
    return seed


def cover(seed, depth, count, hidden, level=0, index=0):
    size = 1 << depth - level
    leaves = range(index * size, min((index + 1) * size, count))
    if not leaves or all(leaf in hidden for leaf in leaves):
        return []
    if level > 0 and not any(leaf in hidden for leaf in leaves):
        return [node(seed, level, index)]
    return cover(seed, depth, count, hidden, level + 1, 2 * index) + cover(
        seed, depth, count, hidden, level + 1, 2 * index + 1)


def vector(source):
    entry, seed = source["entry"], bytes.fromhex(source["seed"])
    version = 2 if any(label in entry for label in WHO) else 1
    head = HEAD + WHO if version == 2 else HEAD
    labels = head + ["relatedEntity", "relatedEntityId"] * (len(entry["related"]) // 2)
    labels += ["path", "before", "after"] * (len(entry["paths"]) // 3)
    texts = [entry.get(label) for label in head] + entry["related"] + entry["paths"]
    depth = (len(texts) - 1).bit_length()
    hashes = b""
    for index, (label, text) in enumerate(zip(labels, texts)):
        message = label + "\n" if text is None else label + "=" + text
        hashes += hmac.new(node(seed, depth, index), message.encode(), hashlib.sha256).digest()
    counts = struct.pack(">II", len(entry["related"]) // 2, len(entry["paths"]) // 3)
    commitment = sha256(b"annals-commitment-v%d\n" % version + counts + hashes)
    encoded = base64.b64encode(commitment).decode()
    leaf = "annals-leaf-v1\n%d\n%s\n" % (source["position"], encoded)
    shown = cover(seed, depth, len(texts), [labels.index(label) for label in source["hidden"]])
    return {
        **source,
        "commitment": encoded,
        "leafHash": sha256(b"\0" + leaf.encode()).hex(),
        "cover": [one.hex() for one in shown],
        "firstHash": hashes[:32].hex(),
        "lastHash": hashes[-32:].hex(),
    }


if __name__ == "__main__":
    def member(name, value):
        return "    %s: %s" % (json.dumps(name), json.dumps(value, ensure_ascii=False))

    print("[\n" + ",\n".join(
        "  {\n" + ",\n".join(member(name, value) for name, value in vector(one).items()) + "\n  }"
        for one in json.load(sys.stdin)) + "\n]")
