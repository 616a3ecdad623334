//! Machine code and its memory: building a module, finishing it, and freeing it with its last user.

use std::ffi::c_void;
use std::fmt::{self, Write};
use std::sync::{Mutex, OnceLock};

use cranelift_codegen::ir::{AbiParam, FuncRef, Function, GlobalValue, UserFuncName, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{Context, FinalizedRelocTarget};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{DataDescription, FuncId, Linkage, Module};
use ssql_abi::ColumnView;

use crate::JitError;
use crate::intrinsics::TABLE;

/// The signature of every kernel: context, columns, first row, number of rows; returns a [`ssql_abi::Status`].
pub(crate) type Entry = unsafe extern "C" fn(*mut c_void, *const ColumnView, u64, u64) -> i32;

/// The host, with the settings of all our code. The verifier runs in debug builds.
fn isa() -> Result<OwnedTargetIsa, JitError> {
    static ISA: OnceLock<Result<OwnedTargetIsa, JitError>> = OnceLock::new();
    ISA.get_or_init(|| {
        let mut flags = settings::builder();
        let wanted = [
            ("opt_level", "speed"),
            ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
            ("is_pic", "false"),
            ("use_colocated_libcalls", "false"),
        ];
        for (name, value) in wanted {
            flags.set(name, value).map_err(|e| JitError::Backend(e.to_string()))?;
        }
        let host = cranelift_native::builder().map_err(JitError::Host)?;
        host.finish(settings::Flags::new(flags)).map_err(|e| JitError::Backend(e.to_string()))
    })
    .clone()
}

/// A module under construction.
pub(crate) struct ModuleBuilder {
    module: JITModule,
    pub builder_context: FunctionBuilderContext,
    functions: Vec<(FuncId, Function)>,
}

impl ModuleBuilder {
    pub(crate) fn new() -> Result<ModuleBuilder, JitError> {
        // Library calls are refused in `define`, so none is ever looked up by this name.
        let mut builder = JITBuilder::with_isa(isa()?, Box::new(|call| format!("refused {call}")));
        for intrinsic in &TABLE {
            builder.symbol(intrinsic.name, (intrinsic.address)());
        }
        Ok(ModuleBuilder {
            module: JITModule::new(builder),
            builder_context: FunctionBuilderContext::new(),
            functions: Vec::new(),
        })
    }

    /// An empty function of a kernel's signature.
    pub(crate) fn function(&self) -> Function {
        let mut signature = self.module.make_signature();
        let pointer = self.module.target_config().pointer_type();
        signature.params =
            vec![AbiParam::new(pointer), AbiParam::new(pointer), AbiParam::new(types::I64), AbiParam::new(types::I64)];
        signature.returns = vec![AbiParam::new(types::I32)];
        Function::with_name_signature(UserFuncName::default(), signature)
    }

    pub(crate) fn frontend_config(&self) -> cranelift_codegen::isa::TargetFrontendConfig {
        self.module.target_config()
    }

    /// Makes the intrinsic at `index` of the table callable in `function`.
    pub(crate) fn intrinsic(&mut self, index: usize, function: &mut Function) -> Result<FuncRef, JitError> {
        let mut signature = self.module.make_signature();
        TABLE[index].signature(&mut signature);
        let id = self.module.declare_function(TABLE[index].name, Linkage::Import, &signature)?;
        Ok(self.module.declare_func_in_func(id, function))
    }

    /// Puts constant bytes into the module and makes their address available in `function`.
    pub(crate) fn bytes(&mut self, bytes: &[u8], function: &mut Function) -> Result<GlobalValue, JitError> {
        let id = self.module.declare_anonymous_data(false, false)?;
        let mut data = DataDescription::new();
        data.define(bytes.into());
        self.module.define_data(id, &data)?;
        Ok(self.module.declare_data_in_func(id, function))
    }

    /// Compiles a finished function.
    pub(crate) fn define(&mut self, name: &str, function: Function) -> Result<(), JitError> {
        let id = self.module.declare_function(name, Linkage::Local, &function.signature)?;
        let mut context = Context::for_function(function.clone());
        self.module.define_function(id, &mut context)?;
        let code = context.compiled_code().expect("define_function has compiled it");
        let library_call = |target: &FinalizedRelocTarget| {
            matches!(target, FinalizedRelocTarget::ExternalName(cranelift_codegen::ir::ExternalName::LibCall(_)))
        };
        if code.buffer.relocs().iter().any(|r| library_call(&r.target)) {
            return Err(JitError::Backend(format!("{name} needs a library function")));
        }
        self.functions.push((id, function));
        Ok(())
    }

    /// Makes all functions callable; entries stand in the order of their definition.
    pub(crate) fn finish(mut self) -> Result<Code, JitError> {
        self.module.finalize_definitions()?;
        let entries = self
            .functions
            .iter()
            .map(|(id, _)| {
                let address = self.module.get_finalized_function(*id);
                // SAFETY: the function was built by `function` with exactly this signature and the host's calling
                // convention; `Code` keeps the memory until no one holds the pointer.
                unsafe { std::mem::transmute::<*const u8, Entry>(address) }
            })
            .collect();
        let functions = self.functions.into_iter().map(|(_, function)| function).collect();
        Ok(Code { entries, functions, module: Mutex::new(Some(self.module)) })
    }
}

/// Finished machine code. Its memory is freed when it is dropped; [`Entry`] pointers are handed out only within the
/// kernel that owns it.
pub(crate) struct Code {
    entries: Vec<Entry>,
    functions: Vec<Function>,
    module: Mutex<Option<JITModule>>,
}

impl Code {
    /// The function that was defined as number `index`.
    pub(crate) fn entry(&self, index: usize) -> Entry {
        self.entries[index]
    }

    /// The functions as they were handed to Cranelift.
    pub(crate) fn clif(&self) -> String {
        self.functions.iter().map(|f| f.display().to_string()).collect::<Vec<String>>().join("\n")
    }

    /// The host's instructions, with labels instead of addresses.
    pub(crate) fn asm(&self) -> Result<String, JitError> {
        let isa = isa()?;
        let mut text = String::new();
        for function in &self.functions {
            let mut context = Context::for_function(function.clone());
            context.set_disasm(true);
            let code = context
                .compile(&*isa, &mut Default::default())
                .map_err(|e| JitError::Backend(format!("{:?}", e.inner)))?;
            writeln!(text, "{}", code.vcode.as_deref().unwrap_or_default()).expect("a String takes all text");
        }
        Ok(text)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("functions", &self.functions.len()).finish_non_exhaustive()
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        let module = self.module.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(module) = module {
            // SAFETY: entries leave this crate only as calls through a kernel that owns this value, so none is running
            // or can be called again.
            unsafe { module.free_memory() };
        }
    }
}
