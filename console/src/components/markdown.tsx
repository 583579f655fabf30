import { lexer, type MarkedToken, type Token, type Tokens } from 'marked';
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { TableScroll } from './table.tsx';
import { LongText, Text } from './text.tsx';
import './values.css';

/** Characters. A longer text is shown as written: laying it out again for each new word would block the page. */
const maxLength = 50_000;

/** Markdown from a model, without markup: HTML stays text, and only addresses of the web become links, pictures too. */
export function MarkdownText({ text }: { readonly text: string }) {
  const tokens = useMemo(
    () => (text.length > maxLength ? undefined : lexer(text, { gfm: true, breaks: true })),
    [text],
  );
  if (tokens === undefined) return <LongText text={text} />;
  return (
    <div class="markdown" dir="auto">
      <Parts tokens={tokens} />
    </div>
  );
}

function Parts({ tokens }: { readonly tokens: readonly Token[] }): ComponentChildren {
  return tokens.map((token, index) =>
    isMarked(token) ? <Part key={index} token={token} /> : <Text key={index} lines text={token.raw} />,
  );
}

/** Without extensions the lexer makes tokens of its own kinds alone. */
function isMarked(token: Token): token is MarkedToken {
  return token.type !== '';
}

/** Tokens that are one element around their parts. */
const elements = { paragraph: 'p', blockquote: 'blockquote', strong: 'strong', em: 'em', del: 'del' } as const;

function Part({ token }: { readonly token: MarkedToken }): ComponentChildren {
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'paragraph':
    case 'blockquote':
    case 'strong':
    case 'em':
    case 'del': {
      const Element = elements[token.type];
      return (
        <Element>
          <Parts tokens={token.tokens} />
        </Element>
      );
    }
    case 'heading':
      return (
        <p class="markdown-heading">
          <Parts tokens={token.tokens} />
        </p>
      );
    case 'list':
      return <List list={token} />;
    case 'list_item':
      return <Parts tokens={token.tokens} />;
    case 'code':
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls a line that is longer than the page.
        <pre tabIndex={0}>
          <code>
            <Text lines text={token.text} />
          </code>
        </pre>
      );
    case 'table':
      return <Table table={token} />;
    case 'hr':
      return <hr />;
    case 'br':
      return <br />;
    case 'codespan':
      return (
        <code>
          <Text lines text={token.text} />
        </code>
      );
    case 'link':
      return (
        <WebLink href={token.href}>
          <Parts tokens={token.tokens} />
        </WebLink>
      );
    case 'image':
      return (
        <WebLink href={token.href}>
          <Text lines text={token.text === '' ? token.href : token.text} />
        </WebLink>
      );
    case 'text':
      return token.tokens === undefined ? <Text lines text={token.text} /> : <Parts tokens={token.tokens} />;
    case 'escape':
      return <Text lines text={token.text} />;
    default:
      return <Text lines text={token.raw} />;
  }
}

function List({ list }: { readonly list: Tokens.List }) {
  const items = list.items.map((item, index) => (
    <li key={index}>
      <Parts tokens={item.tokens} />
    </li>
  ));
  return list.ordered ? <ol start={list.start === '' ? 1 : list.start}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ table: { header, rows } }: { readonly table: Tokens.Table }) {
  return (
    <TableScroll label="A table of the answer">
      <table class="table">
        <thead>
          <tr>
            {header.map((cell, index) => (
              <th key={index} scope="col">
                <Parts tokens={cell.tokens} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, index) => (
                <td key={index}>
                  <Parts tokens={cell.tokens} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </TableScroll>
  );
}

/** A link to the web, in a tab of its own that knows nothing of this one. Any other address is its text. */
function WebLink({ href, children }: { readonly href: string; readonly children: ComponentChildren }) {
  if (!/^https?:\/\//i.test(href)) return <>{children}</>;
  return (
    <a href={href} title={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}
