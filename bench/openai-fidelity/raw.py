"""Sends a request as its bytes stand on stdin, and prints status, headers and body of the answer as JSON."""
import http.client
import json
import sys
from urllib.parse import urlsplit

url, key = urlsplit(sys.argv[1]), sys.argv[2]
connection = http.client.HTTPConnection(url.netloc)
headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}", "OpenAI-Beta": "responses=v1"}
connection.request("POST", url.path, sys.stdin.buffer.read(), headers)
answer = connection.getresponse()
content = answer.read().decode()
print(json.dumps({"status": answer.status, "headers": {k.lower(): v for k, v in answer.getheaders()}, "body": content}))
