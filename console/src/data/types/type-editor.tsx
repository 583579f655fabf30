import { type JsonObject, stringifyJson } from '@annals/client/json';
import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { allows } from '../../api/session.ts';
import { Button, useWork } from '../../components/buttons.tsx';
import { TextField } from '../../components/forms.tsx';
import { ConfirmButton } from '../../components/overlays.tsx';
import { PageHeader } from '../../components/page.tsx';
import { FailureBox, Skeleton } from '../../components/states.tsx';
import { tell } from '../../components/toasts.ts';
import { navigate, path, place } from '../../router/router.tsx';
import { contentToSave, editableText, readEditedObject, versionOf } from '../json-editor/document-text.ts';
import { JsonEditor } from '../json-editor/json-editor.tsx';

const template = {
  name: { en: '' },
  jsonSchema: { type: 'object', properties: { status: { enum: ['OPEN', 'CLOSED'] } }, required: ['status'] },
};

/** The definition of a type: its name and the schema of its instances, as JSON. */
export function TypeEditor() {
  const isNew = path.value === 'data/type/new';
  const id = place.value.parameters.get('type') ?? '';
  const { value, error, reload } = useRequest(isNew ? undefined : `type ${id}`, (signal) =>
    annals().exact.customEntities.get(id, { signal }),
  );
  if (error !== undefined) return <FailureBox error={error} onRetry={reload} />;
  if (isNew) return <Editing key="new" typeId="" current={undefined} />;
  return value?.get('id') === id ? <Editing key={id} typeId={id} current={value} /> : <Skeleton />;
}

function Editing({ typeId, current }: { readonly typeId: string; readonly current: JsonObject | undefined }) {
  const [id, setId] = useState(typeId);
  const [text, setText] = useState(() => (current === undefined ? stringifyJson(template, 2) : editableText(current)));
  const { isBusy, failure, forget, act } = useWork(() => navigate({ path: 'data/types' }));
  const mayWrite = allows('schema.schema_manage');
  const idFault = /^[A-Z][A-Z0-9_]{0,62}$/.test(id) ? undefined : 'Capital letters, digits and _, a letter first.';
  const { value: content, fault } = readEditedObject(text);
  const isReady = content !== undefined && idFault === undefined;
  const save = async () => {
    if (content === undefined) return;
    const { customEntities } = annals().exact;
    const version = current === undefined ? undefined : versionOf(current);
    const saved = contentToSave(content, { id, version });
    await (current === undefined ? customEntities.create(saved) : customEntities.put(id, saved));
    tell(`The type ${id} is saved.`);
  };
  return (
    <form
      onInput={forget}
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) void act(save);
      }}
    >
      <PageHeader
        title={current === undefined ? 'New type' : `Type ${typeId}`}
        lead="If the type has a schema, its instances must satisfy it."
      >
        <Button onClick={() => navigate({ path: 'data/types' })}>{mayWrite ? 'Cancel' : 'Back'}</Button>
        {mayWrite && current !== undefined ? (
          <ConfirmButton
            kind="danger"
            icon="remove"
            aria-label="Delete the type"
            ask={{
              title: `Delete the type ${id}?`,
              run: async () => {
                await annals().customEntities.delete(id);
                tell(`The type ${id} is deleted.`);
                navigate({ path: 'data/types' });
              },
              body: <p>Annals deletes a type only if it has no instances. Its history stays.</p>,
            }}
          />
        ) : undefined}
        {mayWrite ? (
          <Button kind="primary" type="submit" disabled={isBusy || !isReady}>
            Save
          </Button>
        ) : undefined}
      </PageHeader>
      <div class="card card-body form-grid">
        <FailureBox error={failure} />
        {current === undefined ? (
          <TextField
            kind="code"
            label="Id"
            hint="It cannot be changed later."
            error={id === '' ? undefined : idFault}
            placeholder="WARRANTY_CLAIM"
            value={id}
            onText={setId}
          />
        ) : undefined}
        <JsonEditor
          label="Definition"
          hint="name has a text for each language. jsonSchema is optional: a schema in JSON Schema 2020-12."
          text={text}
          fault={fault}
          onText={setText}
          isReadOnly={!mayWrite}
        />
      </div>
    </form>
  );
}
