import { useEffect, useRef } from 'preact/hooks';
import { FormField } from '../components/form-field.tsx';

/** Characters, as the service counts them. */
const maxName = 200;

interface ViewNameFieldProps {
  readonly name: string;
  readonly onName: (name: string) => void;
}

export function ViewNameField({ name, onName }: ViewNameFieldProps) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    // A dialog that opens gives the focus to its first button, so this waits until it has.
    queueMicrotask(() => {
      input.current?.focus();
      input.current?.select();
    });
  }, []);
  return (
    <FormField label="Name">
      {(control) => (
        <input
          {...control}
          ref={input}
          dir="auto"
          autocomplete="off"
          maxLength={maxName}
          value={name}
          onInput={(event) => onName(event.currentTarget.value)}
        />
      )}
    </FormField>
  );
}
