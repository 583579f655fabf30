import { stringifyJson } from '@annals/client/json';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { PathChange } from '../api/history-reads.ts';
import { useInSlices } from '../api/use-in-slices.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { type Items, LazyList } from '../components/lazy-list.tsx';
import { Text } from '../components/name.tsx';
import { counted } from '../components/numbers.ts';
import { findPaths } from './find-paths.ts';
import { ValueChange } from './value-change.tsx';

type Paths = Items<readonly [string, PathChange]>;

/** From so many paths on one may look for some by their name. */
const minSearched = 40;

interface PathChangesProps {
  readonly paths: Paths;
  /** What stands below the values of a path. */
  readonly below?: (path: string, change: PathChange) => ComponentChildren;
}

/** Paths with their two values, made as the reader comes to them. */
export function PathChanges({ paths, below }: PathChangesProps) {
  const [part, setPart] = useState('');
  const found = useInSlices(() => findPaths(paths, part), [paths, part]).value;
  return (
    <div class="path-list">
      {paths.length < minSearched ? undefined : (
        <div class="path-search">
          <input
            type="search"
            class="control"
            aria-label="Find a path"
            placeholder="Find a path"
            value={part}
            onInput={(event) => setPart(event.currentTarget.value)}
          />
          <span class="muted number" role="status">
            {part === '' || found === undefined ? '' : counted(found.length, 'path')}
          </span>
        </div>
      )}
      <LazyList
        key={part}
        items={found ?? []}
        portion={30}
        render={([path, change]) => (
          <section key={path} class="path-item">
            <header>
              <h2>
                <bdi>
                  <Text text={path === '' ? '(whole document)' : path} />
                </bdi>
              </h2>
              <CopyButton what={`the value of ${path}`} text={() => copied(change)} />
            </header>
            <ValueChange before={change.before} after={change.after} />
            {below?.(path, change)}
          </section>
        )}
      />
    </div>
  );
}

/** What it became; of a path that is gone, what it was. A string without its quotes. */
function copied({ before, after }: PathChange): string {
  const value = after ?? before ?? null;
  return typeof value === 'string' ? value : stringifyJson(value, 2);
}
