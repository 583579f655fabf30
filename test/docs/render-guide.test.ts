import { expect, test } from 'vitest';
import { renderGuide } from '../../src/http/openapi/guides.ts';

const toItself = (href: string) => href;

test('the first heading is the title, and equal headings get ids of their own', async () => {
  const { title, html } = await renderGuide('# What `q` *means*\n\n## Time\n\n## Time\n', toItself);
  expect(title).toBe('What q means');
  expect(html).toContain('<h1 id="what-q-means">');
  expect(html).toContain('<h2 id="time">');
  expect(html).toContain('<h2 id="time-1">');
});

test('raw HTML is shown as text', async () => {
  const { html } = await renderGuide('a <b onclick="x()">c</b>\n\n<script>alert(1)</script>\n', toItself);
  expect(html).not.toMatch(/<script|<b/);
  expect(html).toContain('&lt;script&gt;alert(1)');
});

test('a link that leads nowhere is its text, and a picture is its description', async () => {
  const { html } = await renderGuide('[one](a.md) [two](javascript:alert(1)) ![three](x.png)', (href) =>
    href === 'a.md' ? '/a"b' : undefined,
  );
  expect(html).toBe('<p><a href="/a&quot;b">one</a> two three</p>\n');
});

test('text in code keeps its characters', async () => {
  expect((await renderGuide('`a<b` and\n\n```\n"x" & <y>\n```\n', toItself)).html).toContain(
    '&quot;x&quot; &amp; &lt;y&gt;',
  );
});

test('tables stand in a frame of their own', async () => {
  const { html } = await renderGuide('| a | b |\n|---|---|\n| `1` | 2 |\n', toItself);
  expect(html).toContain('<div class="table" tabindex="0"><table><thead><tr><th>a</th><th>b</th></tr></thead>');
  expect(html).toContain('<td><code>1</code></td><td>2</td>');
});

test('a table without words in its head has none, and a heading without words is a cell', async () => {
  expect((await renderGuide('| | |\n|---|---|\n| a | b |\n', toItself)).html).not.toContain('<th');
  expect((await renderGuide('| | one |\n|---|---|\n| a | b |\n', toItself)).html).toContain(
    '<tr><td></td><th>one</th></tr>',
  );
});
