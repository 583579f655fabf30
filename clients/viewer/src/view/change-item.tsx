import { useMemo, useState } from 'preact/hooks';
import { Icon } from '../../../../console/src/components/icon.tsx';
import { Text } from '../../../../console/src/components/text.tsx';
import type { Change, ViewerReads } from '../reads/viewer-reads.ts';
import type { DocumentId } from '../search/search.ts';
import { FieldChange } from './field-change.tsx';
import { fieldsOfChange } from './fields-of-change.ts';
import { useLanguage } from './language-context.ts';
import { Sentence } from './sentence.tsx';

interface ChangeItemProps {
  readonly change: Change;
  readonly reads: ViewerReads | undefined;
  /** Undefined where the list is that of the document. */
  readonly onOpen: ((document: DocumentId) => void) | undefined;
}

/**
 * Fields that are shown before the reader asks for the others: a new document has many, and that it is new says most.
 */
const shownFields = { create: 3, update: 5, delete: 0 } as const;

/** One change: what it happened to, who made it, and its fields. */
export function ChangeItem({ change, reads, onOpen }: ChangeItemProps) {
  const language = useLanguage();
  const { at, type, actor, actorId, onBehalfOf } = change;
  const [isOpen, setOpen] = useState(false);
  const { whole, state, readWhole } = useWhole(change, reads);
  const { entity, cut = [] } = whole ?? change;
  const fields = useMemo(() => fieldsOfChange(whole ?? change), [whole, change]);
  const shown = fields.slice(0, isOpen ? maxShown : shownFields[type]);
  const rest = Math.min(fields.length, maxShown) - shown.length;
  return (
    <li class={`change ${type}`} part={`change ${type}`}>
      <span class="mark" part="mark">
        <Icon name={icons[type]} size={14} />
      </span>
      <div class="what">
        <p class="title" part="title">
          <Sentence
            text={onOpen === undefined ? type : titles[type]}
            with={onOpen === undefined ? {} : { document: <DocumentName change={change} onOpen={onOpen} /> }}
          />
          {actor === undefined ? undefined : (
            <span class="actor" part="actor">
              {' '}
              <Sentence text="by" with={{ actor: <Person name={actor} id={actorId} /> }} />
            </span>
          )}
          {onBehalfOf === undefined ? undefined : (
            <span class="actor" part="actor on-behalf-of">
              {' '}
              <Sentence text="onBehalfOf" with={{ person: <Person name={onBehalfOf.name} id={onBehalfOf.id} /> }} />
            </span>
          )}
        </p>
        {shown.length === 0 ? undefined : (
          <ul class="fields" part="fields">
            {shown.map(({ path, before, after }) => (
              <FieldChange key={path} entity={entity} path={path} type={type} before={before} after={after} />
            ))}
          </ul>
        )}
        <div class="more">
          {fields.length > shownFields[type] ? (
            <button type="button" class="link" part="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
              {isOpen
                ? language.text('fewerFields')
                : language.counted(shown.length === 0 ? 'fields' : 'moreFields', rest)}
            </button>
          ) : undefined}
          {cut.length > 0 && shown.some(({ path }) => cut.includes(path)) ? (
            <button type="button" class="link" part="link" disabled={state === 'reading'} onClick={readWhole}>
              {language.text(state === 'failed' ? 'wholeFailed' : 'wholeValue')}
            </button>
          ) : undefined}
        </div>
      </div>
      <time class="time" part="time" dateTime={at} title={language.moment(Date.parse(at))}>
        {language.clock(Date.parse(at))}
      </time>
    </li>
  );
}

/** Fields of one change that a page draws. More than these are for the CSV. */
const maxShown = 500;

const icons = { create: 'plus', update: 'edit', delete: 'remove' } as const;
const titles = { create: 'created', update: 'changed', delete: 'deleted' } as const;

interface PersonProps {
  readonly name: string | undefined;
  readonly id: string | undefined;
}

/** `Jane Doe (u-17)`, as far as the token shows it. */
function Person({ name, id }: PersonProps) {
  const language = useLanguage();
  const isIdAlone = name === undefined || name === id;
  return (
    <>
      <bdi>
        <Text text={isIdAlone ? (id ?? '') : language.actor(name)} />
      </bdi>
      {isIdAlone || id === undefined ? undefined : (
        <>
          {' ('}
          <bdi>
            <Text text={id} />
          </bdi>
          )
        </>
      )}
    </>
  );
}

interface DocumentNameProps {
  readonly change: Change;
  readonly onOpen: (document: DocumentId) => void;
}

function DocumentName({ change: { entity, entityId, name }, onOpen }: DocumentNameProps) {
  const language = useLanguage();
  const title = documentTitle(language.entity(entity), entityId, name);
  const text = (
    <bdi>
      <Text text={title} />
    </bdi>
  );
  return (
    <button
      type="button"
      class="document"
      part="document"
      title={language.text('openDocument', { document: title })}
      onClick={() => onOpen({ entity, entityId })}
    >
      {text}
    </button>
  );
}

/** The type and the name of a document, unless the name says its type: `Order ORD-1`. Without a name, the id. */
export function documentTitle(type: string, entityId: string, name: string | undefined): string {
  const called = name ?? entityId;
  return called.toLowerCase().includes(type.toLowerCase()) ? called : `${type} ${called}`;
}

/** The change with all of its values, once the reader asked for them. */
function useWhole({ ref }: Change, reads: ViewerReads | undefined) {
  const [whole, setWhole] = useState<Change>();
  const [state, setState] = useState<'reading' | 'failed'>();
  const readWhole = () => {
    if (reads === undefined || ref === undefined) return;
    setState('reading');
    reads.change(ref, new AbortController().signal).then(setWhole, () => setState('failed'));
  };
  return { whole, state, readWhole };
}
