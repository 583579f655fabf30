import type { JsonValue } from '@annals/client/json';
import { useState } from 'preact/hooks';
import { isContainer, JsonScalar, JsonTree, Quote } from '../components/json-tree.tsx';
import { Text } from '../components/name.tsx';
import { countText } from '../components/numbers.ts';
import type { WordRun } from './compare-words.ts';
import { useComparedWords } from './use-compared-words.ts';
import './compare.css';

interface ValueChangeProps {
  /** Undefined where the path did not exist, which is not null. */
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
}

/** Members of a value that are shown at first, of many values on one page. */
const room = 20;

/** What a value was and what it became. */
export function ValueChange({ before, after }: ValueChangeProps) {
  const compared = useComparedWords(before, after);
  return (
    <div class="value-change">
      {before === undefined ? undefined : <Side kind="removed" value={before} runs={compared?.before} />}
      {after === undefined ? undefined : <Side kind="added" value={after} runs={compared?.after} />}
    </div>
  );
}

interface SideProps {
  readonly kind: 'removed' | 'added';
  readonly value: JsonValue;
  readonly runs: readonly WordRun[] | undefined;
}

function Side({ kind, value, runs }: SideProps) {
  return (
    <div class={`value-side ${kind}`}>
      <span class="value-sign">
        <span aria-hidden="true">{kind === 'removed' ? '−' : '+'}</span>
        <span class="visually-hidden">{kind === 'removed' ? 'Before' : 'After'}</span>
      </span>
      {runs === undefined ? (
        isContainer(value) ? (
          <JsonTree value={value} open={1} room={room} />
        ) : (
          <JsonScalar value={value} />
        )
      ) : (
        <span>
          <Quote />
          <Runs runs={runs} />
          <Quote />
        </span>
      )}
    </div>
  );
}

/** Characters of an unchanged run that stay at each of its ends. */
const context = 120;

function Runs({ runs }: { readonly runs: readonly WordRun[] }) {
  const [whole, setWhole] = useState(false);
  return (
    <bdi class="value-words">
      {runs.map(({ text, changed }, index) => {
        if (changed) {
          return (
            <mark key={index}>
              <Text text={text} />
            </mark>
          );
        }
        if (whole || text.length <= 3 * context) return <Text key={index} text={text} />;
        const isFirst = index === 0;
        const isLast = index === runs.length - 1;
        return (
          <span key={index}>
            {isFirst ? undefined : <Text text={text.slice(0, context)} />}
            <button type="button" class="more" onClick={() => setWhole(true)}>
              … {countText(text.length - (isFirst || isLast ? context : 2 * context))} characters …
            </button>
            {isLast ? undefined : <Text text={text.slice(-context)} />}
          </span>
        );
      })}
    </bdi>
  );
}
