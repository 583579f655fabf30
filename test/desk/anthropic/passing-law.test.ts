import { expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { startOpenai } from '../openai/openai-server.ts';

const { vendor, server, tenantWithKeys } = closeAfterAll(await startOpenai());
await tenantWithKeys('acme');
const token = await server.token('acme');
const random = new Random();

/** JSON text, and why it is refused: the end of the path that the error names. */
interface Part {
  readonly text: string;
  readonly refused?: string | undefined;
}

const fine = (text: string): Part => ({ text });
const bad = (text: string, refused: string): Part => ({ text, refused });

/** A part of others: refused where one of them is. */
function joined(parts: readonly Part[], write: (texts: readonly string[]) => string): Part {
  return { text: write(parts.map(({ text }) => text)), refused: parts.find(({ refused }) => refused)?.refused };
}

const list = (parts: readonly Part[]) => joined(parts, (texts) => `[${blank()}${texts.join(`${blank()},`)}]`);
const blank = () => random.pick(['', '', '', ' ', '\n\t']);
const some = (max: number, make: () => Part) => Array.from({ length: random.below(max + 1) }, make);

/** One in so many is refused, so that some two thirds of the requests pass. */
const rarely = (make: () => Part, otherwise: () => Part) => (random.below(25) === 0 ? make() : otherwise());

function source(holder: 'image' | 'document'): Part {
  const refused = [
    bad('{"type":"url","url":"https://a.example/b"}', 'source.type'),
    bad('{"type":"file","file_id":"file_1"}', 'source.file_id'),
    bad('{"type":"base64","data":"https://a.example/b"}', 'source.data'),
    bad('{"type":"base64","data":"eA==","url":"https://a.example"}', 'source.url'),
    bad('{"type":"s3","data":"eA=="}', 'source.type'),
  ];
  const files = [
    fine('{"type":"base64","media_type":"image/png","data":"eA=="}'),
    fine('{"data":"eA\\u003d=","type":"base64"}'),
  ];
  const texts = [
    fine('{"type":"text","media_type":"text/plain","data":"https://a.example"}'),
    fine('{"type":"content","content":"x"}'),
  ];
  return rarely(
    () => random.pick(refused),
    () => random.pick(holder === 'image' ? files : [...files, ...texts]),
  );
}

function block(depth = 0): Part {
  const inner = (write: (text: string) => string) =>
    joined([list(some(2, () => block(depth + 1)))], ([text = '']) => write(text));
  const image = () => joined([source('image')], ([text = '']) => `{"type":"image","source":${text}}`);
  const document = () =>
    joined([source('document')], ([text = '']) => `{${blank()}"source":${text},"type":"document"}`);
  const leaves = [
    () => fine('{"type":"text","text":"Łódź \\u0041 😀","cache_control":{"type":"ephemeral"}}'),
    () => fine('{"type":"thinking","thinking":"","signature":"c2ln"}'),
    () => fine('{"type":"redacted_thinking","data":"eA=="}'),
    () => fine('{"type":"tool_use","id":"t","name":"f","input":{"Type":1.10,"file_id":"f","container":[]}}'),
    () => fine('{"type":"tool_reference","tool_name":"f"}'),
    () => fine('{"type":"tool_removal","tool":{"type":"tool_reference","name":"f"}}'),
    image,
    document,
  ];
  const refused = [
    bad('{"type":"server_tool_use","id":"s","name":"web_search","input":{}}', 'type'),
    bad('{"type":"mcp_tool_result","content":"x"}', 'type'),
    bad('{"type":"container_upload"}', 'type'),
    bad('{"type":"text","text":"x","Source":{"type":"url"}}', 'Source'),
    bad('{"type":"text","text":"x","type":"image"}', 'type'),
    bad('{"type":"tool_addition","tool":{"type":"mcp_tool_reference","name":"f"}}', 'tool.type'),
  ];
  const nested = [
    () => inner((text) => `{"type":"tool_result","tool_use_id":"t","content":${text}}`),
    () => inner((text) => `{"type":"search_result","source":"https://a.example","title":"t","content":${text}}`),
    () => inner((text) => `{"type":"document","source":{"type":"content","content":${text}}}`),
    () =>
      joined(
        [tool()],
        ([text = '']) => `{"type":"tool_addition","tool":{"type":"tool_definition","definition":${text}}}`,
      ),
  ];
  return rarely(
    () => random.pick(refused),
    () => random.pick(depth > 2 ? leaves : [...leaves, ...nested])(),
  );
}

function tool(): Part {
  const types = [
    '"custom"',
    'null',
    '"bash_20250124"',
    '"text_editor_20250728"',
    '"computer_20251124"',
    '"memory_20250818"',
  ];
  const hosted = [
    'web_search_20250305',
    'web_fetch_20250910',
    'code_execution_20250825',
    'mcp_toolset',
    'advisor_20260301',
    'bash',
  ];
  return rarely(
    () => bad(`{"type":"${random.pick(hosted)}","name":"f"}`, 'type'),
    () =>
      fine(
        `{"name":"f",${blank()}"input_schema":{"Type":"x","file_id":1}${random.pick(['', `,"type":${random.pick(types)}`])}}`,
      ),
  );
}

function member(): Part {
  const members = [
    fine(`"made_up_${random.below(1_000)}":{"a":[1.10,-0,"\\u00e9"]}`),
    fine('"temperature":1.0e0'),
    fine('"metadata":{"user_id":"u"}'),
    fine('"container":null'),
    fine('"thinking":{"type":"adaptive","display":"omitted"}'),
    fine('"context_management":{"edits":[{"type":"clear_thinking_20251015"}]}'),
    fine('"output_config":{"format":{"type":"json_schema","schema":{"Container":1}}}'),
    joined([list(some(3, () => tool()))], ([text = '']) => `"tools":${text}`),
    joined([list(some(3, () => block(3)))], ([text = '']) => `"system":${text}`),
  ];
  const refused = [
    bad('"container":"c"', 'container'),
    bad('"mcp_servers":[]', 'mcp_servers'),
    bad('"fallbacks":"default"', 'fallbacks'),
    bad('"thread":{"type":"create"}', 'thread'),
    bad('"Max_Tokens":1', 'Max_Tokens'),
    bad('"model":"other"', 'model'),
    bad('"a":[{"skill_id":"s"}]', 'a.0.skill_id'),
    bad('"a":"\\udead"', 'a'),
  ];
  return rarely(
    () => random.pick(refused),
    () => random.pick(members),
  );
}

function request(): Part {
  const message = () => joined([list(some(3, () => block()))], ([text = '']) => `{"role":"user","content":${text}}`);
  const messages = joined([list([message(), ...some(2, message)])], ([text = '']) => `"messages"${blank()}:${text}`);
  const stream = random.below(2) === 0 ? [fine('"stream":true')] : [];
  const needed = [fine('"model":"claude-m"'), fine(`"max_tokens":${random.pick(['50', '0', '5e1'])}`), messages];
  const members = [...new Map(some(3, member).map((part) => [/^"\w+"/.exec(part.text)?.[0], part])).values()];
  const all = [...needed, ...stream, ...members].sort(() => random.next() - 0.5);
  return joined(all, (texts) => `${blank()}{${texts.join(`${blank()},${blank()}`)}${blank()}}`);
}

test('a request passes byte for byte, or is 400 and names what is refused, where it has that anywhere', async () => {
  const outcomes = { passed: 0, refused: 0 };
  for (let trial = 0; trial < trials(150); trial += 1) {
    const { text, refused } = request();
    const path = random.pick(['messages', 'messages/count_tokens', 'messages?beta=true']);
    vendor.requests.length = 0;
    const response = await server.call(`/anthropic/acme/v1/${path}`, {
      method: 'POST',
      token,
      headers: { 'content-type': 'application/json' },
      body: text,
    });
    const answer = await response.text();
    if (refused === undefined) {
      expect(response.status, `${text}\n${answer}`).toBe(200);
      expect(vendor.requests.map(({ bodyText, url }) => [bodyText, url])).toEqual([[text, `/v1/${path}`]]);
      outcomes.passed += 1;
    } else {
      expect(response.status, `${text}\n${answer}`).toBe(400);
      expect(JSON.parse(answer)).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
      // Where several are refused, it names one of them.
      expect(JSON.parse(answer).error.message).toMatch(/ [\w.]+: /);
      expect(vendor.requests).toEqual([]);
      outcomes.refused += 1;
    }
  }
  console.info(`${outcomes.passed} requests passed, ${outcomes.refused} were refused`);
});

test('a request with one refused part names it', async () => {
  const lone: Part[] = [];
  for (let trial = 0; trial < 4_000 && lone.length < trials(40); trial += 1) {
    const part = random.below(2) === 0 ? member() : block(3);
    if (part.refused !== undefined) lone.push(part);
  }
  for (const { text, refused = '' } of lone) {
    const isMember = text.startsWith('"');
    const content = isMember ? '"x"' : `[${text}]`;
    const body = `{"model":"claude-m","max_tokens":5,"messages":[{"role":"user","content":${content}}]${isMember ? `,${text}` : ''}}`;
    const response = await server.call('/anthropic/acme/v1/messages', {
      method: 'POST',
      token,
      headers: { 'content-type': 'application/json' },
      body,
    });
    const { error } = (await response.json()) as { error: { message: string } };
    expect(response.status, body).toBe(400);
    expect(error.message, body).toContain(`${refused}: `);
  }
});
