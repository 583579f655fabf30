import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { findDocuments, readNames } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { CopyButton } from '../components/buttons.tsx';
import { SelectField, TextField } from '../components/forms.tsx';
import { counted } from '../components/numbers.ts';
import { PageHeader } from '../components/page.tsx';
import { Answer, EmptyState, LoadingLine } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { momentText } from '../components/times.ts';
import { Time } from '../components/values.tsx';
import { Link, navigate } from '../router/router.tsx';
import { type DocumentsView, documentsOf, documentsView } from './document-view.ts';

interface DocumentsSearchProps {
  /** The document of the address, which does not exist. */
  readonly unknown: { readonly entity: string; readonly entityId: string } | undefined;
}

/** Milliseconds after a key until the service is called. */
const pause = 150;
/** The service lists so many at once. */
const size = 100;

const times: readonly (readonly [days: string, words: string])[] = [
  ['', 'any time'],
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', 'a year'],
];

/** Finds documents by their names and ids, and those that have not changed for some time. */
export function DocumentsSearch({ unknown }: DocumentsSearchProps) {
  const { unchangedDays, ...address } = documentsView.value;
  const view = unknown === undefined ? address : { text: unknown.entityId, entity: '' };
  const [{ text, entity }, setWritten] = useState(view);
  /** What the address was last set to: another value comes from outside. */
  const inAddress = useRef(view);
  const input = useRef<HTMLInputElement>(null);
  const list = useId();
  // Without suggestions the reader can continue writing.
  const types = useRequest(entity, (signal) => readNames({ field: 'entity', prefix: entity }, signal)).value ?? [];

  useEffect(() => {
    // Readers come here to write, or to correct what they wrote.
    input.current?.focus();
    input.current?.setSelectionRange(text.length, text.length);
  }, []);
  useEffect(() => {
    if (isSame(view, inAddress.current)) return;
    inAddress.current = view;
    setWritten(view);
  }, [view.text, view.entity]);
  useEffect(() => {
    if (isSame({ text, entity }, inAddress.current)) return;
    const timer = setTimeout(() => {
      inAddress.current = { text, entity };
      navigate(documentsOf({ text, entity, unchangedDays }), { replace: true });
    }, pause);
    return () => clearTimeout(timer);
  }, [text, entity, unchangedDays]);

  return (
    <>
      <PageHeader
        title="Documents"
        lead="Find a document to see its whole life, and what it looked like at any moment."
      >
        <CopyButton what="the address of this view" label="Share" text={() => location.href} />
      </PageHeader>
      {unknown === undefined ? undefined : (
        <p class="note" role="alert">
          <span>
            The history has nothing about <Name as="strong" text={`${unknown.entity} ${unknown.entityId}`} />. Small and
            capital letters differ in an address. Below are those that begin so.
          </span>
        </p>
      )}
      <search class="card card-body documents-search">
        <TextField
          label="Name or id"
          hint="The beginning of an id, or of words of a name."
          input={{ ref: input, autocomplete: 'off', spellcheck: false }}
          value={text}
          onText={(next) => setWritten({ text: next, entity })}
        />
        <TextField
          label="Type"
          hint="Such as order. Empty: any."
          input={{ list, autocomplete: 'off' }}
          value={entity}
          onText={(next) => setWritten({ text, entity: next })}
        />
        <datalist id={list}>
          {types.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <SelectField
          label="Unchanged for"
          hint="Counted from its last change."
          value={String(unchangedDays ?? '')}
          choices={times}
          onChoose={(days) => {
            // Text that is not in the address yet must not be lost when the address changes.
            inAddress.current = { text, entity };
            navigate(documentsOf({ text, entity, unchangedDays: days === '' ? undefined : Number(days) }));
          }}
        />
      </search>
      <FoundDocuments text={view.text.trim()} entity={view.entity.trim()} unchangedDays={unchangedDays} />
    </>
  );
}

type Written = Pick<DocumentsView, 'text' | 'entity'>;

function isSame(a: Written, b: Written): boolean {
  return a.text === b.text && a.entity === b.entity;
}

interface FoundDocumentsProps {
  readonly text: string;
  readonly entity: string;
  readonly unchangedDays: number | undefined;
}

function FoundDocuments({ text, entity, unchangedDays }: FoundDocumentsProps) {
  const found = useRequest(JSON.stringify([text, entity, unchangedDays]), (signal) =>
    findDocuments(
      {
        text,
        entity: entity === '' ? undefined : entity,
        changedBefore: unchangedDays === undefined ? undefined : momentText(Date.now() - unchangedDays * 86_400_000),
        size,
      },
      signal,
    ),
  );
  const { value } = found;
  return (
    <section class="card documents-found" aria-label="Documents">
      <LoadingLine active={found.isLoading} />
      <Answer of={found} lines={8}>
        {(documents) =>
          documents.length === 0 ? (
            <EmptyState icon="document" title="No documents">
              <p>Case does not matter, but a part in the middle of a word finds nothing.</p>
            </EmptyState>
          ) : (
            <ul>
              {documents.map(({ entity: type, entityId, name, at }) => (
                <li key={JSON.stringify([type, entityId])}>
                  <Link to={{ path: 'document', parameters: { entity: type, id: entityId } }} class="document-link">
                    <span class="document-name">
                      <strong>
                        <Name text={name ?? entityId} />
                      </strong>{' '}
                      <Name class="muted" text={name === undefined ? type : `${type} ${entityId}`} />
                    </span>
                    <span class="muted">
                      <Time at={at} />
                    </span>
                  </Link>
                </li>
              ))}
            </ul>
          )
        }
      </Answer>
      <p class="documents-count muted" role="status">
        {value === undefined || !found.isCurrent
          ? ''
          : value.length === 0
            ? 'No documents'
            : value.length < size
              ? `${counted(value.length, 'document')}, ${text === '' ? '' : 'exact ones first, then '}the latest changed${text === '' ? ' first' : ''}`
              : `The first ${size}. Write more to find others.`}
      </p>
    </section>
  );
}
