"""Forms of texts that feedback on a hidden test may show; see :mod:`.hidden_exceptions`."""

#: With N where a number stands, AXES how many axes (3D, 1-D), S a shape, R one with new axes, L a
#: list of lengths, D what torch calls a dtype, DTYPE what NumPy does, UFUNC one of its functions,
#: OP an operator, BACKWARD a step of the backward pass, TENSOR its class, and ID a name.
FORMS = [
    "matmul: Input operand N has a mismatch in its core dimension N, with gufunc signature "
    "(n?,k),(k,m?)->(n?,m?) (size N is different from N)",
    "matmul: Input operand N does not have enough dimensions (has N, gufunc core with signature "
    "(n?,k),(k,m?)->(n?,m?) requires N)",
    "shapes S and S not aligned: N (dim N) != N (dim N)",
    "operands could not be broadcast together with shapes S S ",
    "operands could not be broadcast together with shapes S S S ",
    "operands could not be broadcast together with shapes S S",
    "operands could not be broadcast together with shape S S",
    "could not broadcast input array from shape S into shape S",
    "non-broadcastable output operand with shape S doesn't match the broadcast shape S",
    "operands could not be broadcast together with remapped shapes [original->remapped]: R->R "
    "R->R  and requested shape S",
    "operands could not be broadcast together with remapped shapes [original->remapped]: S  and "
    "requested shape S",
    "shape mismatch: objects cannot be broadcast to a single shape.  Mismatch is between arg N "
    "with shape S and arg N with shape S.",
    "shape mismatch: indexing arrays could not be broadcast together with shapes S S ",
    "shape-mismatch for sum",
    "mat1 and mat2 shapes cannot be multiplied (NxN and NxN)",
    "The size of tensor a (N) must match the size of tensor b (N) at non-singleton dimension N",
    "Expected size for first two dimensions of batch2 tensor to be: [N, N] but got: [N, N].",
    "size mismatch, got input (N), mat (NxN), vec (N)",
    "vector + matrix @ vector expected, got N, N, N",
    "outer: Expected AXES argument self, but got AXES",
    "outer: Expected AXES argument vec2, but got AXES",
    "batch1 must be a AXES tensor",
    "batch2 must be a AXES tensor",
    "AXES tensors expected, but got AXES and AXES tensors",
    "self must be a matrix",
    "mat1 must be a matrix, got AXES tensor",
    "mat2 must be a matrix, got AXES tensor",
    "t() expects a tensor with <= N dimensions, but self is AXES",
    "tensor.mT is only supported on matrices or batches of matrices. Got AXES tensor.",
    "inconsistent tensor size, expected tensor L and src L to have the same number of elements, "
    "but got N and N elements respectively",
    "inner() the last dimension must match on both input tensors but got shapes L and L",
    "unflatten: Provided sizes L don't multiply up to the size of dim N (N) in the input tensor",
    "Sizes of tensors must match except in dimension N. Expected size N but got size N for tensor "
    "number N in the list.",
    "Tensors must have same number of dimensions: got N and N",
    "stack expects each tensor to be equal size, but got L at entry N and L at entry N",
    "The expanded size of the tensor (N) must match the existing size (N) at non-singleton "
    "dimension N.  Target sizes: L.  Tensor sizes: L",
    "output with shape L doesn't match the broadcast shape L",
    "expand(TENSOR{L}, size=L): the number of sizes provided (N) must be greater or "
    "equal to the number of dimensions in the tensor (N)",
    "shape 'L' is invalid for input of size N",
    "permute(sparse_coo): number of dimensions in the tensor input does not match the length of "
    "the desired ordering of dimensions i.e. input.dim() = N is not equal to len(dims) = N",
    "The shape of the mask L at index N does not match the shape of the indexed tensor L at index "
    "N",
    "einsum(): subscript LETTER has size N for operand N which does not broadcast with previously "
    "seen size N",
    "einsum(): the number of subscripts in the equation (N) does not match the number of "
    "dimensions (N) for operand N and no ellipsis was given",
    "einsum(): more operands were provided than specified in the equation",
    "einsum(): fewer operands were provided than specified in the equation",
    "operand has more dimensions than subscripts given in einstein sum, but no '...' ellipsis "
    "provided to broadcast the extra dimensions.",
    "einstein sum subscripts string contains too many subscripts for operand N",
    "more operands provided to einstein sum function than specified in the subscripts string",
    "fewer operands provided to einstein sum function than specified in the subscripts string",
    "operands could not be broadcast together with remapped shapes [original->remapped]: R->R "
    "R->R ",
    "Index tensor must have the same number of dimensions as input tensor",
    "cannot reshape array of size N into shape S",
    "all the input array dimensions except for the concatenation axis must match exactly, but "
    "along dimension N, the array at index N has size N and the array at index N has size N",
    "all the input arrays must have same number of dimensions, but the array at index N has N "
    "dimension(s) and the array at index N has N dimension(s)",
    "all input arrays must have the same shape",
    "input operand has more dimensions than allowed by the axis remapping",
    "Index put requires the source and destination dtypes match, got D for the destination and D "
    "for the source.",
    "expected m1 and m2 to have the same dtype, but got: D != D",
    "mat1 and mat2 must have the same dtype, but got D and D",
    "expected scalar type D but found D",
    "data type <class ID> not inexact",
    "Cannot cast ufunc 'UFUNC' output from DTYPE to DTYPE with casting rule 'same_kind'",
    "ufunc 'UFUNC' not supported for the input types, and the inputs could not be safely coerced "
    "to any supported types according to the casting rule ''safe''",
    "loop of ufunc does not support argument N of type ID which has no callable UFUNC method",
    "The numpy boolean negative, the `-` operator, is not supported, use the `~` operator or the "
    "logical_not function instead.",
    "arrays used as indices must be of integer (or boolean) type",
    "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'",
    "mixed dtype (CPU): all inputs must share same datatype.",
    "mixed dtype (CPU): expect parameter to have scalar type of D",
    "result type D can't be cast to the desired output type D",
    "mean(): could not infer output dtype. Input dtype must be either a floating point or complex "
    "dtype. Got: D",
    "where expected condition to be a boolean tensor, but got a tensor with dtype D",
    "masked_fill_ only supports boolean masks, but got mask with dtype D",
    "tensors used as indices must be long, int, byte or bool tensors",
    "~ (operator.invert) is only implemented on integer and Boolean-type tensors",
    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
    "invert a mask, use the `~` or `logical_not()` operator instead.",
    "numpy boolean subtract, the `-` operator, is not supported, use the bitwise_xor, the `^` "
    "operator, or the logical_xor function instead.",
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
    "arrays are valid indices",
    "only one element tensors can be converted to Python scalars",
    "only 0-dimensional arrays can be converted to Python scalars",
    "only integer scalar arrays can be converted to a scalar index",
    "a Tensor with N elements cannot be converted to Scalar",
    "setting an array element with a sequence.",
    "unsupported operand type(s) for OP: ID and ID",
    "ID() argument must be a string or a real number, not ID",
    "element N of tensors does not require grad and does not have a grad_fn",
    "one of the variables needed for gradient computation has been modified by an inplace "
    "operation: [TENSOR L], which is output N of BACKWARD, is at version N; expected "
    "version N instead. Hint: enable anomaly detection to find the operation that failed to "
    "compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False).",
    "grad can be implicitly created only for scalar outputs",
    "One of the differentiated Tensors does not require grad",
    "The differentiated Tensor at index N appears to not have been used in the graph. Set "
    "allow_unused=True if this is the desired behavior.",
    "axis N is out of bounds for array of dimension N",
    "source: axis N is out of bounds for array of dimension N",
    "destination: axis N is out of bounds for array of dimension N",
    "axis1: axis N is out of bounds for array of dimension N",
    "axis2: axis N is out of bounds for array of dimension N",
    "cannot select an axis to squeeze out which has size not equal to one",
    "array split does not result in an equal division",
    "Dimension out of range (expected to be in range of [N, N], but got N)",
    "tuple index out of range",
    "index N is out of bounds for axis N with size N",
    "index N is out of bounds for dimension N with size N",
    "boolean index did not match indexed array along axis N; size of axis is N but size of "
    "corresponding boolean axis is N",
    "not enough values to unpack (expected N, got N)",
    "too many values to unpack (expected N)",
    "list index out of range",
    "index out of range in self",
    "pop from empty list",
    "axes don't match array",
    "too many indices for array: array is N-dimensional, but N were indexed",
    "too many indices for tensor of dimension N",
    "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
    "Boolean value of Tensor with more than one value is ambiguous",
    "a leaf Variable that requires grad is being used in an in-place operation.",
    "a view of a leaf Variable that requires grad is being used in an in-place operation.",
    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
    "view size is not compatible with input tensor's size and stride (at least one dimension "
    "spans across two contiguous subspaces). Use .reshape(...) instead.",
    "name ID is not defined",
    "cannot access local variable ID where it is not associated with a value",
    "ID object has no attribute ID",
    "module ID has no attribute ID",
    "cannot assign module before Module.__init__() call",
    "cannot assign parameter before Module.__init__() call",
    "ID() missing N required positional argument: ID",
    "ID() missing N required positional arguments: ID and ID",
    "ID() got an unexpected keyword argument ID",
    "ID() takes N positional argument but N were given",
    "ID() takes N positional arguments but N was given",
    "ID() takes N positional arguments but N were given",
    "ID object is not callable",
    "ID object is not subscriptable",
    "ID object is not iterable",
    "object of type ID has no len()",
    "ID object cannot be interpreted as an integer",
    "ID(): argument 'other' (position N) must be Tensor, not ID",
    "ID(): argument 'input' (position N) must be Tensor, not ID",
    "cannot unpack non-iterable ID object",
    "tuple indices must be integers or slices, not tuple",
    "list indices must be integers or slices, not tuple",
]
#: Types, and modules, that have a name of their own.
TYPES = frozenset(
    {"NoneType", "tuple", "list", "dict", "int", "float", "bool", "str", "set", "function"}
    | {"method", "builtin_function_or_method", "Tensor", "Parameter"}
    | {"numpy.ndarray", "numpy.float64", "numpy.float32", "numpy.int64", "numpy.bool"}
    | {"numpy", "math", "torch", "torch.nn", "torch.nn.functional"}
)
#: Classes of exceptions.
KINDS = frozenset(
    {"NameError", "UnboundLocalError", "AttributeError", "TypeError", "ValueError"}
    | {"RuntimeError", "IndexError", "AxisError", "UFuncTypeError"}
)
