import { useId, useState } from 'preact/hooks';
import { readNames } from '../api/history-reads.ts';
import { useRequest } from '../api/use-request.ts';
import { Button } from '../components/button.tsx';
import { FormField } from '../components/form-field.tsx';
import { Name } from '../components/name.tsx';
import { PageHeader } from '../components/page-header.tsx';
import { setParameters } from '../router/location.ts';

interface DocumentFormProps {
  /** What was asked for and is not there. */
  readonly unknown?: { readonly entity: string; readonly entityId: string };
}

/** Asks which document is meant. */
export function DocumentForm({ unknown }: DocumentFormProps) {
  const [entity, setEntity] = useState(unknown?.entity ?? '');
  const [id, setId] = useState(unknown?.entityId ?? '');
  const list = useId();
  // If there are no suggestions, the reader can go on writing.
  const names = useRequest(entity, (signal) => readNames({ field: 'entity', prefix: entity }, signal)).value ?? [];
  return (
    <>
      <PageHeader title="A document" lead="See its whole life, and what it looked like at any moment." />
      <form
        class="card card-body document-form"
        onSubmit={(event) => {
          event.preventDefault();
          setParameters({ entity: entity.trim(), id: id.trim() });
        }}
      >
        {unknown === undefined ? undefined : (
          <p class="note" role="alert">
            <span>
              The history has nothing about{' '}
              <strong>
                <Name text={`${unknown.entity} ${unknown.entityId}`} />
              </strong>
              . Check how both are written: small and capital letters differ.
            </span>
          </p>
        )}
        <FormField label="Entity" hint="The type of the document, such as order.">
          {(control) => (
            <input
              {...control}
              required
              list={list}
              value={entity}
              onInput={(event) => setEntity(event.currentTarget.value)}
            />
          )}
        </FormField>
        <datalist id={list}>
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <FormField label="Id" hint="The id as the history shows it, such as 10016 or brisk-go.">
          {(control) => (
            <input {...control} required value={id} onInput={(event) => setId(event.currentTarget.value)} />
          )}
        </FormField>
        <Button kind="primary" type="submit">
          Show
        </Button>
      </form>
    </>
  );
}
